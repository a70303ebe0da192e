// The manifest and the code say the same: every command is registered, every setting is read.
import assert from 'node:assert';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

const root = path.dirname(path.dirname(new URL(import.meta.url).pathname));
const manifest = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8'));
const source = fs.readdirSync(path.join(root, 'src')).map((name) => fs.readFileSync(path.join(root, 'src', name), 'utf8')).join('\n');
const commands = manifest.contributes.commands.map((declared) => declared.command);

test('every declared command is registered', () => {
  for (const command of commands) assert.ok(source.includes(`command('${command}'`), command);
});

test('every command in a menu is declared', () => {
  for (const items of Object.values(manifest.contributes.menus)) {
    for (const item of items) assert.ok(commands.includes(item.command), item.command);
  }
});

test('no command of the extension is one of the server', () => {
  for (const command of commands) assert.ok(!command.startsWith('accelopt.server.'), command);
});

test('every setting is read, and has a description', () => {
  for (const [name, setting] of Object.entries(manifest.contributes.configuration.properties)) {
    assert.ok(setting.markdownDescription, name);
    if (name !== 'accelopt.trace.server') assert.ok(source.includes(`'${name.replace('accelopt.', '')}'`), name);
  }
});

test('settings that name a program are restricted in an untrusted workspace', () => {
  assert.ok(manifest.capabilities.untrustedWorkspaces.restrictedConfigurations.includes('accelopt.interpreter'));
});

test('the bundle was built and starts from the manifest', () => {
  assert.ok(fs.statSync(path.join(root, manifest.main)).size > 100_000);
});
