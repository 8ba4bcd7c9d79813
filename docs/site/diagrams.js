// Loads what draws diagrams, 3 MB, only for a page that has one.
if (document.querySelector(".mermaid")) {
  const source = new URL("mermaid.min.js", document.currentScript.src);
  document.write(`<script src="${source}"></script>`);
}
