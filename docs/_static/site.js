/* A button beside each block of code that copies its text, without the prompts and output of examples; and tables that can be
   read on a narrow screen. */
document.addEventListener("DOMContentLoaded", () => {
  for (const block of document.querySelectorAll("div.highlight pre")) {
    // what is printed is not typed again
    if (block.closest(".highlight-none, .highlight-text, .sphx-glr-script-out")) continue;
    const button = document.createElement("button");
    button.className = "copy";
    button.textContent = "copy";
    button.setAttribute("aria-label", "copy this code");
    button.addEventListener("click", async () => {
      const text = block.textContent;
      const lines = text.split("\n").filter((line) => /^(>>>|\.\.\.) ?/.test(line));
      const code = lines.length ? lines.map((line) => line.replace(/^(>>>|\.\.\.) ?/, "")).join("\n") : text;
      await navigator.clipboard.writeText(code.trimEnd());
      button.textContent = "copied";
      setTimeout(() => (button.textContent = "copy"), 1500);
    });
    block.parentElement.classList.add("copied-by");
    block.parentElement.append(button);
  }
  for (const table of document.querySelectorAll("table.docutils")) {
    // on a narrow screen each cell says the heading of its column (site.css); the first stands for its row, and two
    // columns need no words
    const heads = [...table.querySelectorAll("thead th")].map((head) => head.textContent.trim());
    for (const row of table.querySelectorAll("tbody tr"))
      [...row.cells].forEach((cell, i) => i && heads.length > 2 && cell.setAttribute("data-head", heads[i]));
    // names of files may be broken after a slash
    for (const text of table.querySelectorAll("td code .pre")) text.innerHTML = text.innerHTML.replaceAll("/", "/<wbr>");
  }
});
