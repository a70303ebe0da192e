// Bundles the extension and its panel into dist/, with the licence of every package that went into them.
import fs from 'node:fs';
import path from 'node:path';
import { build } from 'esbuild';

const root = import.meta.dirname;
const common = { absWorkingDir: root, bundle: true, minify: true, metafile: true, logLevel: 'warning' };

/** What is bundled. Of Vega only what `src/vega.mjs` names. */
export const bundles = [
  { ...common, entryPoints: ['src/extension.ts'], outfile: 'dist/extension.js', external: ['vscode'], format: 'cjs', platform: 'node', target: 'node20' },
  { ...common, entryPoints: ['src/panel.mts'], outfile: 'dist/panel.js', alias: { vega: './src/vega.mjs' }, format: 'iife', platform: 'browser', target: 'es2022' },
];

/** The folders of the packages that have text in the bundles of these metafiles. */
export function packages(metafiles) {
  const files = metafiles.flatMap(({ outputs }) => Object.values(outputs)).flatMap(({ inputs }) => Object.entries(inputs))
    .filter(([, { bytesInOutput }]) => bytesInOutput);
  return [...new Set(files.map(([file]) => /.*node_modules\/(@[^/]+\/)?[^/]+/.exec(file)?.[0]).filter(Boolean))].sort();
}

/** What a package says of its licence. Throws where it says nothing. */
export function licence(folder) {
  const names = fs.readdirSync(path.join(root, folder)).filter((name) => /^(licen[cs]e|notice|copying|third-?party-?notices?)\b/i.test(name));
  if (!names.length) throw new Error(`${folder} has no licence text; the extension cannot hold it.`);
  return names.sort().map((name) => fs.readFileSync(path.join(root, folder, name), 'utf8').replaceAll('\r\n', '\n').trim()).join('\n\n');
}

function notices(metafiles) {
  const byText = new Map();
  for (const folder of packages(metafiles)) byText.set(licence(folder), [...(byText.get(licence(folder)) ?? []), folder]);
  const named = (folder) => {
    const { name, version, license } = JSON.parse(fs.readFileSync(path.join(root, folder, 'package.json'), 'utf8'));
    return `${name} ${version} (${license})`;
  };
  const parts = [...byText].map(([text, folders]) => `${folders.map(named).join('\n')}\n\n${text}\n`);
  return ['The AccelOpt extension holds parts of these packages, each under its licence.\n', ...parts].join(`\n${'-'.repeat(80)}\n\n`);
}

if (process.argv[1] === import.meta.filename) {
  const done = await Promise.all(bundles.map(build));
  fs.writeFileSync(path.join(root, 'dist/NOTICES.txt'), notices(done.map(({ metafile }) => metafile)));
}
