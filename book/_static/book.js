// Sphinx marks bibliography entries with a role that ARIA has dropped, inside a list that wants list items.
document.addEventListener("DOMContentLoaded", () => {
  for (const entry of document.querySelectorAll('.citation-list > [role="doc-biblioentry"]')) entry.setAttribute("role", "listitem");
});
