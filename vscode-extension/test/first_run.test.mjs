// From a machine without the server to one with it, as sequences: what is said, what mends it, and what is then there.
import assert from 'node:assert';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, before, beforeEach, test } from 'node:test';
import { load } from './load.mjs';

const usualPath = process.env.PATH;
let folder, environment, installation, interpreter, server, states, vscode, context, warned;

/** A `python` that has each of `packages` while a file of that name is beside it; its pip ends with `code`. */
function python(at, code = 0, packages = []) {
  const bin = path.dirname(at);
  fs.mkdirSync(bin, { recursive: true });
  fs.writeFileSync(at, `#!/bin/sh
case "$1 $2" in
  "-m venv") rm -f "$4/bin/server" "$4/bin/torch"; mkdir -p "$4/bin"; [ -e "$4/bin/python" ] || cp "$0" "$4/bin/python"; exit 0;;
  "-m pip") [ ${code} = 0 ] || { echo "no network" >&2; exit ${code}; }
    echo "$@" >> ${folder}/pip; echo "Collecting it"
    case "$*" in *torch==*) touch "$(dirname "$0")/torch";; *accelopt-lsp*) touch "$(dirname "$0")/server";; esac; exit 0;;
esac
has() { [ -e "$(dirname "$0")/$1" ]; }
case "$2" in
  *importlib.metadata*) echo "{\\"python\\": \\"3.12.1\\", \\"numpy\\": \\"2\\", \\"torch\\": \\"$(has torch && echo 2.13.0)\\", \\"triton\\": \\"$(has torch && echo 3.7.1)\\", \\"accelopt-lsp\\": \\"\\"}";;
  *accelopt_lsp*) has server;;
esac
`, { mode: 0o755 });
  packages.forEach((name) => fs.writeFileSync(path.join(bin, name), ''));
}

before(async () => ({ module: { environment, installation, interpreter, server, states }, vscode } =
  await load('environment', 'installation', 'interpreter', 'server', 'states')));

beforeEach(() => {
  vscode.begin();
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'accelopt-first-run-'));
  for (const name of ['VIRTUAL_ENV', 'CONDA_PREFIX']) delete process.env[name];
  process.env.PATH = `${folder}/bin:${folder}/tools`;
  fs.mkdirSync(`${folder}/tools`);
  for (const name of ['sh', 'cp', 'rm', 'mkdir', 'touch', 'dirname', 'env']) fs.symlinkSync(`/usr/bin/${name}`, `${folder}/tools/${name}`);
  python(path.join(folder, 'bin/python3'));
  const state = new Map();
  warned = [];
  context = {
    globalState: { get: (name) => state.get(name), update: async (name, value) => void state.set(name, value) },
    globalStorageUri: { fsPath: path.join(folder, 'storage') },
    extensionPath: folder,
    extension: { packageJSON: { version: '2.0.0' } },
    secrets: { get: async () => undefined },
  };
});

afterEach(() => {
  process.env.PATH = usualPath;
  fs.rmSync(folder, { recursive: true });
});

const output = { info() {}, error() {}, warn: (said) => warned.push(said) };
const own = () => path.join(folder, 'storage/venv/bin/python');
const pip = () => fs.readFileSync(path.join(folder, 'pip'), 'utf8').trim().split('\n').map((line) => line.split('--upgrade ')[1]);
const found = () => environment.findServer(context, output);

/** Wait until so much was said. */
async function said(count) {
  while (vscode.person.said.length < count) await new Promise((resolve) => setTimeout(resolve, 5));
  return vscode.person.said.at(-1);
}

/** The server with a status item that keeps what it shows. */
function started() {
  const status = { shown: {}, show(shown) { this.shown = shown; } };
  return { running: new server.Server(context, output, status), status };
}

test('without a server the person is told the sizes, and each button mends it', async () => {
  const { running, status } = started();
  await running.restart();
  assert.equal(status.shown.state, 'not-installed');
  const { message, choices } = await said(1);
  assert.match(message, /0.1 GB.*0.4 GB to fetch, 1.7 GB on disk/);
  assert.deepEqual(choices.slice(0, 3), states.MENDS['not-installed'].map(({ button }) => button));
});

test('a toast that went away is reached again: a restart opens the menu, and the menu mends it', async () => {
  const { running } = started();
  await running.restart();
  await said(1);
  await running.restart({ asked: true });
  assert.deepEqual(vscode.person.ran, [['accelopt.showMenu']]);
});

test('a person who declined is not told again, and still reaches the menu', async () => {
  vscode.person.answers = ['Never'];
  const { running } = started();
  await running.restart();
  await said(1);
  await installation.offerInstallation(context, output);
  assert.equal(vscode.person.said.length, 1);
  await running.restart({ asked: true });
  assert.deepEqual(vscode.person.ran, [['accelopt.showMenu']]);
});

test('with torch: torch first and alone, from the builds for CPUs, then Triton, then the server', async () => {
  assert.equal(await installation.installPackages(context, output), true);
  assert.equal((await found()).command, own());
  assert.match(pip()[0], /^torch==[\d.]+\+cpu --extra-index-url https:\/\/download.pytorch.org\/whl\/cpu$/);
  assert.deepEqual(pip().slice(1), [environment.TRITON[0], 'accelopt-lsp[model,mcp]']);
  assert.equal(vscode.person.settings['accelopt.python'], undefined); // what kernels see by themselves
});

test('torch and Triton are those of the Makefile', () => {
  const makefile = fs.readFileSync(new URL('../../Makefile', import.meta.url), 'utf8');
  assert.equal(environment.TORCH[0], `torch==${/^TORCH := (.*)/m.exec(makefile)[1]}+cpu`);
  assert.equal(environment.TRITON[0], `triton==${/^TRITON := (.*)/m.exec(makefile)[1]}`);
});

test('the server only, then torch beside it: what was there stays', async () => {
  assert.equal(await installation.installServer(context, output), true);
  assert.deepEqual(pip(), ['accelopt-lsp[model,mcp]']);
  assert.equal(await installation.installPackages(context, output), true);
  assert.equal(pip().length, 3);
  assert.equal((await found()).command, own());
});

test('a Python with torch is used by kernels: where it is found first by itself, else by the setting', async () => {
  python(path.join(folder, 'conda/bin/python'), 0, ['torch']);
  process.env.CONDA_PREFIX = path.join(folder, 'conda');
  await installation.offerInstallation(context, output);
  assert.match(vscode.person.said[0].message, /Triton kernels can see torch 2.13.0 .*conda/);
  await installation.installServer(context, output);
  assert.equal(vscode.person.settings['accelopt.python'], undefined);
  python(path.join(folder, 'plain/bin/python'));
  process.env.VIRTUAL_ENV = path.join(folder, 'plain');
  await installation.installServer(context, output);
  assert.equal(vscode.person.settings['accelopt.python'], path.join(folder, 'conda/bin/python'));
});

test('an installation that fails says why, with what else helps', async () => {
  python(path.join(folder, 'bin/python3'), 1);
  assert.equal(await installation.installServer(context, output), false);
  assert.match(vscode.person.said[0].message, /could not install it: no network/);
  assert.ok(vscode.person.said[0].choices.includes('Python...'));
});

test('without any Python new enough that is said', async () => {
  fs.writeFileSync(path.join(folder, 'bin/python3'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
  assert.equal(await installation.installServer(context, output), false);
  assert.match(vscode.person.said[0].message, /no Python 3.10 or newer/);
});

test('a setting that names no server says so, with another Python first', async () => {
  vscode.person.settings['accelopt.interpreter'] = '/nowhere/python';
  const { running, status } = started();
  await running.restart();
  assert.equal(status.shown.state, 'wrong-interpreter');
  assert.equal(vscode.person.said[0].choices[0], 'Python...');
});

test('a command without a server says the state and what mends it', async () => {
  const { running } = started();
  await running.restart();
  await said(1);
  await running.execute('profile', {});
  assert.match((await said(2)).message, /not running/);
  assert.ok(vscode.person.said.at(-1).choices.includes('Server Only'));
});

test('a chosen Python is what kernels see, and runs the server where it has one', async () => {
  python(path.join(folder, 'conda/bin/python'), 0, ['torch']);
  python(path.join(folder, 'env/bin/python'), 0, ['server']);
  process.env.CONDA_PREFIX = path.join(folder, 'conda');
  process.env.VIRTUAL_ENV = path.join(folder, 'env');
  vscode.person.answers = [/conda/];
  assert.equal(await interpreter.chooseInterpreter(context, output), true);
  assert.match(vscode.person.picks[0].items.find(({ path: at }) => at.includes('conda')).description, /torch 2.13.0 · Triton 3.7.1/);
  assert.deepEqual(vscode.person.settings, { 'accelopt.python': path.join(folder, 'conda/bin/python') });
  vscode.person.answers = [/env/];
  await interpreter.chooseInterpreter(context, output);
  assert.equal(vscode.person.settings['accelopt.interpreter'], path.join(folder, 'env/bin/python'));
});

test('nothing of an untrusted workspace is looked into', async () => {
  python(path.join(folder, 'work/.venv/bin/python'), 0, ['server', 'torch']);
  vscode.workspace.workspaceFolders = [{ uri: { fsPath: path.join(folder, 'work') } }];
  const places = async () => (await interpreter.interpreters(context, output)).map((one) => one.path);
  assert.ok(!(await places()).some((place) => place.includes('work')));
  assert.equal(await found(), undefined);
  vscode.person.trusted = true;
  assert.ok((await places())[0].includes('work'));
  assert.match((await found()).command, /work/);
});

test('an environment of another version is updated, once', async () => {
  python(own(), 0, ['server']);
  assert.equal((await found()).command, own());
  assert.equal((await found()).command, own());
  assert.equal(pip().length, 1);
});

test('an update that fails leaves the server that was there', async () => {
  python(own(), 1, ['server']);
  assert.equal((await found()).command, own());
  assert.match(warned[0], /could not be updated/);
});

const read = (name) => fs.readFileSync(new URL(`../${name}`, import.meta.url), 'utf8');

/** What can keep a person from a first number: a state, with buttons, or a finding, with a quick fix that the menu lists. */
const OBSTACLES = {
  'no interpreter': { state: 'not-installed' },
  'another interpreter': { state: 'wrong-interpreter' },
  'a server that ended': { state: 'stopped' },
  'no torch': { finding: 'missing-package' },
  'no kernel': { state: 'no-kernel' },
  'no problem': { finding: 'no-problem' },
  'timeout': { finding: 'timeout' },
  'untrusted': { state: 'untrusted' },
  'host down': { state: 'host-unreachable' },
};

for (const [obstacle, { state, finding }] of Object.entries(OBSTACLES)) {
  test(`${obstacle} has a sentence and what mends it`, async () => {
    if (state) {
      const commands = JSON.parse(read('package.json')).contributes.commands.map(({ command }) => command);
      assert.ok(states.MENDS[state].length);
      for (const [at, { button, command }] of states.MENDS[state].slice(0, 3).entries()) {
        vscode.person.answers = [button];
        await states.tell(state, 'This is why.');
        assert.equal(vscode.person.said[at].message, 'This is why.');
        assert.ok(commands.includes(command) && vscode.person.ran[at][0] === command, command);
      }
    } else {
      const { actions } = JSON.parse(read('../accelopt_lsp/accelopt_lsp/actions.json'));
      const fixed = actions.flatMap(({ offers = {} }) => Object.values(offers)).flatMap(({ kind, fixes = [] }) => (kind.startsWith('quickfix') ? fixes : []));
      assert.ok(fixed.includes(finding) || read('src/packages.ts').includes(`'${finding}'`), 'a quick fix');
      assert.match(read(`../accelopt_lsp/accelopt_lsp/pages/${finding}.md`), /\w+ .*\./);
    }
  });
}

test('every state is an obstacle or needs no mending', () => {
  const named = Object.values(OBSTACLES).map(({ state }) => state).filter(Boolean);
  assert.deepEqual(Object.keys(states.MENDS).sort(), named.sort());
});

test('a file without a kernel says so while nothing else is to be said', () => {
  vscode.window.activeTextEditor = { document: { uri: 'file:///plain.py' } };
  const status = { state: 'idle', message: 'Ready', plain: ['file:///plain.py'] };
  const shown = states.inFront(status);
  assert.equal(shown.state, 'no-kernel');
  assert.match(shown.detail, /nothing to profile\.$/);
  assert.equal(states.inFront({ ...status, state: 'profiling' }).state, 'profiling');
  vscode.window.activeTextEditor = { document: { uri: 'file:///kernel.py' } };
  assert.equal(states.inFront(status).state, 'idle');
});
