// Stubs of NKI are offered once, where the server offers them, and a type checker is set only with consent.
import assert from 'node:assert';
import { before, beforeEach, test } from 'node:test';
import { load } from './load.mjs';

let stubs, vscode, asked, kept;
const server = { execute: async (name, argument) => { asked.push([name, argument]); return { job: '1', folder: '/work/kernels/typings' }; } };
const context = () => ({ workspaceState: { get: (key) => kept[key], update: async (key, value) => { kept[key] = value; } } });
const consider = (state = 'idle') => new stubs.StubOffer(context(), server).consider({ state, message: '' });

before(async () => ({ module: { stubs }, vscode } = await load('stubs')));
beforeEach(() => {
  vscode.begin();
  [asked, kept] = [[], {}];
  Object.assign(vscode.person, {
    trusted: true, extensions: ['ms-python.vscode-pylance'],
    fixes: [{ command: { command: 'accelopt.server.writeStubs' } }],
  });
  vscode.workspace.workspaceFolders = [{ uri: { fsPath: '/work' } }];
  open('import nki.language as nl\n');
});

function open(text) {
  vscode.window.activeTextEditor = { document: {
    languageId: 'python', uri: new URL('file:///work/kernels/k.py'), lineCount: 2, getText: () => text,
  } };
}

test('Write Stubs writes them, and a type checker is told with consent', async () => {
  vscode.person.answers = [/Write/, /Add/];
  await consider();
  assert.deepEqual(asked, [['writeStubs', { uri: 'file:///work/kernels/k.py' }]]);
  assert.match(vscode.person.said[1].message, /kernels\/typings\. Add it to python\.analysis\.extraPaths/);
  assert.deepEqual(vscode.person.settings, { 'python.analysis.extraPaths': ['kernels/typings'] });
});

test('without consent, without such a type checker, or where it looks there anyway, nothing is set', async () => {
  vscode.person.answers = [/Write/, /No/];
  await consider();
  assert.equal(vscode.person.said.length, 2);
  kept = {};
  vscode.person.answers = [/Write/];
  vscode.person.extensions = [];
  await consider();
  assert.equal(vscode.person.said.length, 3);
  kept = {};
  vscode.person.answers = [/Write/];
  vscode.person.extensions = ['detachhead.basedpyright'];
  vscode.person.project = { 'basedpyright.analysis.stubPath': 'kernels/typings' };
  await consider();
  assert.equal(vscode.person.said.length, 4);
  assert.deepEqual(vscode.person.settings, {});
  assert.equal(asked.length, 3);
});

test('an answer is remembered, also that of who closes the message', async () => {
  for (const answer of [/No/, undefined]) {
    kept = {};
    vscode.person.said = [];
    vscode.person.answers = [answer];
    await consider();
    await consider();
    assert.equal(vscode.person.said.length, 1);
  }
  assert.deepEqual(asked, []);
});

test('nothing is asked where nothing is to be offered', async () => {
  await consider('profiling');
  vscode.person.trusted = false;
  await consider();
  vscode.person.trusted = true;
  open('import nkipedia\n');
  await consider();
  open('from neuronxcc import nki\n');
  vscode.person.fixes = [];
  await consider();
  vscode.window.activeTextEditor = undefined;
  await consider();
  assert.deepEqual(vscode.person.said, []);
});
