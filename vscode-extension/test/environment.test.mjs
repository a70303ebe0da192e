// The private environment: made when the person agrees, kept at the extension's version, and never lost to an update.
import assert from 'node:assert';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { load } from './load.mjs';

const usualPath = process.env.PATH;
let folder, environment, vscode, context, warned;

/** A `python` with the server in it while the file `server` is beside it; its pip ends with `code`. */
function python(at, code) {
  const server = path.join(path.dirname(at), 'server');
  fs.mkdirSync(path.dirname(at), { recursive: true });
  fs.writeFileSync(at, `#!/bin/sh
case "$1 $2" in
  "-m venv") rm -f "$4/bin/server"; exit 0;;
  "-m pip") [ ${code} = 0 ] && touch ${server}; echo "$@" >> ${folder}/pip; exit ${code};;
esac
case "$2" in *accelopt_lsp*) [ -e ${server} ];; esac
`, { mode: 0o755 });
}

beforeEach(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'accelopt-environment-'));
  ({ module: environment, vscode } = await load('environment'));
  process.env.PATH = `${folder}/bin:/usr/bin:/bin`;
  python(path.join(folder, 'bin/python3'), 0);
  const state = new Map();
  warned = [];
  context = {
    globalState: { get: (name) => state.get(name), update: async (name, value) => void state.set(name, value) },
    globalStorageUri: { fsPath: path.join(folder, 'storage') },
    extensionPath: folder,
    extension: { packageJSON: { version: '2.0.0' } },
  };
});

afterEach(() => {
  process.env.PATH = usualPath;
  fs.rmSync(folder, { recursive: true });
});

const output = { info() {}, warn: (said) => warned.push(said) };
const own = () => path.join(folder, 'storage/venv/bin/python');
const filled = () => fs.writeFileSync(path.join(path.dirname(own()), 'server'), '');

test('where there is no server none is found', async () => {
  assert.equal(await environment.findServer(context, output), undefined);
});

test('an environment of another version is updated, once', async () => {
  python(own(), 0);
  filled();
  assert.equal((await environment.findServer(context, output)).command, own());
  assert.equal((await environment.findServer(context, output)).command, own());
  assert.equal(fs.readFileSync(path.join(folder, 'pip'), 'utf8').trim().split('\n').length, 1);
});

test('an update that fails leaves the server that was there', async () => {
  python(own(), 1);
  filled();
  assert.equal((await environment.findServer(context, output)).command, own());
  assert.match(warned[0], /could not be updated/);
});

test('who agrees gets a new environment', async () => {
  vscode.person.answers = [/Install/];
  python(own(), 0);
  assert.equal(await environment.offerEnvironment(context, output, false), true);
  assert.equal((await environment.findServer(context, output)).command, own());
});
