/* A button on each block of code that copies its text, without the prompts and output of examples. */
document.addEventListener("DOMContentLoaded", () => {
  for (const block of document.querySelectorAll("div.highlight pre")) {
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
    block.parentElement.append(button);
  }
});
