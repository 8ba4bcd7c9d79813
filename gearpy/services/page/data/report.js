// What a file that was saved has in place of a server: what was answered when it was made. Null on
// a page that is served.

/** `{app_id, at_ms, version, cluster_id, missing, answers, refused}`; the last two by paths. */
export const report = JSON.parse(document.getElementById("report")?.textContent ?? "null");
