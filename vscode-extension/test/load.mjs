// A module of the extension, bundled with the stand-in for the editor's API, which comes with it.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { build } from 'esbuild';

const here = path.dirname(new URL(import.meta.url).pathname);

/** The module `src/NAME.ts`, and the stand-in that it sees. */
export async function load(name) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'accelopt-module-'));
  const contents = `export * as vscode from 'vscode'; export * as module from './src/${name}';`;
  const outfile = path.join(folder, 'module.mjs');
  await build({
    stdin: { contents, resolveDir: path.join(here, '..'), loader: 'ts' }, bundle: true, platform: 'node', format: 'esm', outfile,
    alias: { vscode: path.join(here, 'vscode_stand_in.mjs') },
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
  });
  const { module, vscode } = await import(outfile);
  fs.rmSync(folder, { recursive: true });
  return { module, vscode };
}
