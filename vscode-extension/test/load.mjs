// Modules of the extension, bundled with the stand-in for the editor's API, which comes with them.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { build } from 'esbuild';

const here = path.dirname(new URL(import.meta.url).pathname);

/** The modules `src/NAME.ts` by their names, and the stand-in that they see. */
export async function load(...names) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'accelopt-modules-'));
  const lines = ['export { clients } from \'vscode-languageclient/node\';', ...names.map((name) => `export * as ${name} from './src/${name}';`)];
  const outfile = path.join(folder, 'modules.mjs');
  await build({
    stdin: { contents: ['export * as vscode from \'vscode\';', ...lines].join('\n'), resolveDir: path.join(here, '..'), loader: 'ts' },
    bundle: true, platform: 'node', format: 'esm', outfile, logLevel: 'error',
    alias: { vscode: path.join(here, 'vscode_stand_in.mjs'), 'vscode-languageclient/node': path.join(here, 'client_stand_in.mjs') },
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
  });
  const { vscode, ...module } = await import(outfile);
  fs.rmSync(folder, { recursive: true });
  return { module, vscode };
}
