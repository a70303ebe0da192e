// The manifest, its texts, the README and the code say the same.
import assert from 'node:assert';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import vsce from '@vscode/vsce';
import { build } from 'esbuild';
import { bundles, licence, packages } from '../build.mjs';

const root = path.dirname(path.dirname(new URL(import.meta.url).pathname));
const read = (name) => fs.readFileSync(path.join(root, name), 'utf8');
const manifest = JSON.parse(read('package.json'));
const texts = JSON.parse(read('package.nls.json'));
const readme = read('README.md');
const source = fs.readdirSync(path.join(root, 'src')).map((name) => read(`src/${name}`)).join('\n');
const { configuration, menus, walkthroughs, commands: declared } = manifest.contributes;
const commands = declared.map(({ command }) => command);
const { actions } = JSON.parse(read('../accelopt_lsp/accelopt_lsp/actions.json'));
const { settings } = JSON.parse(read('../accelopt_lsp/accelopt_lsp/settings/schema.json'));
const atCursor = actions.filter((row) => row.palette?.at_cursor).map((row) => `accelopt.${row.name}`);
const told = (text) => texts[text.slice(1, -1)];

test('every declared command is registered, and in the README', () => {
  for (const { command, title } of declared) {
    assert.ok(atCursor.includes(command) || source.includes(`command('${command}'`), command);
    assert.ok(readme.includes(told(title)), `${title} in README.md`);
  }
});

test('the picture of the README is one that a script takes', () => {
  const [, name] = /!\[[^\]]+\]\(https:\/\/raw\.githubusercontent\.com\/accelopt\/accelopt-lsp\/HEAD\/docs\/images\/([\w-]+)\.png\)/.exec(readme);
  assert.ok(fs.existsSync(path.join(root, `../docs/images/${name}.png`)));
  assert.match(read('../scripts/pictures.py'), new RegExp(`docs/images/${name.replace(/-\w+$/, '')}-`));
});

test('every command in a menu or a walkthrough is declared', () => {
  const linked = [...JSON.stringify(texts).matchAll(/command:([\w.]+)/g)].map(([, command]) => ({ command }));
  assert.ok(linked.length);
  for (const { command } of [...Object.values(menus).flat(), ...linked]) assert.ok(commands.includes(command), command);
});

test('no command of the extension is one of the server', () => {
  for (const command of commands) assert.ok(!command.startsWith('accelopt.server.'), command);
});

test('every text has a key and every key a text', () => {
  const used = new Set([...read('package.json').matchAll(/"%([^"]+)%"/g)].map(([, key]) => key));
  assert.deepEqual([...used].sort(), Object.keys(texts).sort());
});

test('every page of the walkthrough is there and packed', () => {
  for (const { media } of walkthroughs.flatMap(({ steps }) => steps)) assert.ok(read(media.markdown), media.markdown);
  assert.ok(manifest.files.includes('walkthrough/**') && manifest.files.includes('package.nls.json'));
});

test('every step of the guide ticks by what is true, which somebody tells', () => {
  const told = [...source.matchAll(/(?:python|server): '(\w+)'/g)].map(([, step]) => step);
  const status = read('../accelopt_lsp/accelopt_lsp/server/status.py');
  for (const { id, completionEvents } of walkthroughs.flatMap(({ steps }) => steps)) {
    const [, step] = /^onContext:accelopt\.reached\.(\w+)$/.exec(completionEvents[0]);
    assert.ok(told.includes(step) || status.includes(`"${step}"`), id);
  }
});

test('what a person reads in the source can be translated', () => {
  const shown = /(?:title|prompt|placeHolder|placeholder|tooltip|message|detail|label): '[A-Z]|show(?:Information|Warning|Error)Message\(\s*['"`]/g;
  assert.deepEqual(source.match(shown) ?? [], []);
});

test('every setting has a type, a default and a description, and those of the extension alone are in the README', () => {
  for (const [name, { type, default: usual, markdownDescription }] of Object.entries(configuration.properties)) {
    assert.ok(type && usual !== undefined && markdownDescription, name);
    const own = told(markdownDescription);
    if (own) assert.ok(readme.includes(name), `${name} in README.md`);
  }
});

test('settings that name a program, a host or a model are restricted in an untrusted workspace', () => {
  const restricted = manifest.capabilities.untrustedWorkspaces.restrictedConfigurations;
  const sensitive = settings.filter((setting) => setting.sensitive).map(({ name }) => `accelopt.${name.split('.NAME.')[0]}`);
  assert.deepEqual(restricted, [...new Set(['accelopt.interpreter', ...sensitive])]);
  for (const name of restricted) assert.equal(configuration.properties[name].scope, 'machine-overridable', name);
});

test('the bundle was built, starts from the manifest, and stays small', () => {
  const { size } = fs.statSync(path.join(root, manifest.main));
  assert.ok(size > 100_000 && size < 600_000, `${size} bytes`);
});

test('the licence of every bundled package is packed', async () => {
  const built = await Promise.all(bundles.map((bundle) => build({ ...bundle, write: false })));
  const folders = packages(built.map(({ metafile }) => metafile));
  const notices = read('dist/NOTICES.txt');
  assert.ok(folders.includes('node_modules/vega-lite') && folders.includes('node_modules/vscode-languageclient'));
  for (const folder of folders) {
    const { name, version } = JSON.parse(read(`${folder}/package.json`));
    assert.ok(notices.includes(`${name} ${version} (`), folder);
    assert.ok(notices.includes(licence(folder)), folder);
  }
  assert.throws(() => licence('src'), /no licence/);
  const packed = await vsce.listFiles({ cwd: root, packageManager: vsce.PackageManager.None });
  assert.ok(packed.includes('dist/NOTICES.txt'), packed.join());
});
