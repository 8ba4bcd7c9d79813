// Sets the theme that was chosen before the first paint; a module would come too late.
try {
  const chosen = localStorage.getItem("gearpy.theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
} catch {
  // Storage is forbidden: the theme of the machine it is.
}
