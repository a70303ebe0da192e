// The menu: what mends a state stands first, and what mends the file in front with it.
import assert from 'node:assert';
import { before, beforeEach, test } from 'node:test';
import { load } from './load.mjs';

let menu, states, vscode;
const server = { isRunning: true, execute: async () => undefined };
const labels = () => vscode.person.picks[0].items.map(({ label }) => label);

before(async () => ({ module: { menu, states }, vscode } = await load('menu', 'states')));
beforeEach(() => vscode.begin());

for (const state of ['not-installed', 'wrong-interpreter', 'stopped', 'untrusted', 'host-unreachable']) {
  test(`${state}: what mends it comes first, once, with the sentence`, async () => {
    vscode.person.answers = [/\$\(/];
    await menu.showMenu(server, { state, message: 'Not right', detail: 'because of that' });
    const mends = states.MENDS[state];
    assert.deepEqual(labels().slice(1, 1 + mends.length), mends.map(({ icon, title }) => `$(${icon}) ${title}`));
    const commands = vscode.person.picks[0].items.map(({ command }) => command).filter(Boolean);
    assert.equal(new Set(commands).size, commands.length);
    assert.equal(vscode.person.picks[0].placeHolder, 'because of that');
    assert.deepEqual(vscode.person.ran, [[mends[0].command]]);
  });
}

test('what mends the file in front: no problem, a limit, a missing package', async () => {
  vscode.window.activeTextEditor = { document: { languageId: 'python', uri: 'file:///k.py', lineCount: 9 } };
  vscode.person.fixes = ['Create a problem file for this kernel', 'Raise the limit limits.seconds'].map((title) => ({
    title, command: { command: `fix ${title[0]}`, arguments: [1] },
  }));
  vscode.person.answers = [/Raise the limit/];
  await menu.showMenu(server, { state: 'idle', message: 'Ready' });
  assert.deepEqual(labels().slice(1, 3), ['$(wrench) Create a problem file for this kernel', '$(wrench) Raise the limit limits.seconds']);
  assert.deepEqual(vscode.person.ran, [['fix R', 1]]);
});

test('a file without a kernel: an example and the page first, and nothing about its kernels', async () => {
  vscode.window.activeTextEditor = { document: { languageId: 'python', uri: 'file:///k.py', lineCount: 9 } };
  await menu.showMenu(server, { state: 'idle', message: 'Ready', plain: ['file:///k.py'] });
  assert.deepEqual(labels().slice(1, 3), states.MENDS['no-kernel'].map(({ icon, title }) => `$(${icon}) ${title}`));
  assert.ok(!labels().includes('this file'));
  assert.match(vscode.person.picks[0].title, /No kernel in this file/);
});

test('where nothing is wrong the menu begins with the file', async () => {
  vscode.window.activeTextEditor = { document: { languageId: 'python', uri: 'file:///k.py', lineCount: 9 } };
  await menu.showMenu(server, { state: 'idle', message: 'Ready' });
  assert.equal(labels()[0], 'this file');
});
