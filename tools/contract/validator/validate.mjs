// Validates an AsyncAPI document with AsyncAPI's own parser: node validate.mjs <file>. Exits 1 on errors and warnings.
import { readFile } from "node:fs/promises";
import { Parser } from "@asyncapi/parser";

const { document, diagnostics } = await new Parser().parse(await readFile(process.argv[2], "utf8"));
const [ERROR, WARNING] = [0, 1];
const problems = diagnostics.filter(({ severity }) => severity === ERROR || severity === WARNING);
for (const { code, message, path } of problems) {
  console.log(`${code} at ${path.join(".")}: ${message}`);
}
if (document && problems.length === 0) {
  console.log(`valid: AsyncAPI ${document.version()}, ${document.messages().length} messages, ${document.operations().length} operations`);
} else {
  process.exitCode = 1;
}
