// The memory in the side bar: what each pair was used for, its difference, and forgetting it.
import assert from 'node:assert';
import { before, beforeEach, test } from 'node:test';
import { load } from './load.mjs';

let memory, pairs, vscode, view, asked;
const use = { id: 's1', kernel: 'gelu', file: '/work/gelu.py', state: 'accepted' };
const pair = { id: 'abcd', kernel: 'silu', file: '/work/k.py', summary: 'Widen.', gain: '1.8x estimated', created: '2026-11-29T04:00:00', tries: 'It was tried on 1 kernel, helped on 1.', uses: [use] };
const server = {
  isRunning: true,
  execute: async (name, argument) => (asked.push([name, argument]), argument.id ? { slow: 'before', fast: 'after' } : { pairs: [pair] }),
};

before(async () => ({ module: { memory, pairs }, vscode } = await load('memory', 'pairs')));
beforeEach(() => {
  vscode.begin();
  asked = [];
  view = new pairs.PairTree(server);
});

test('a pair says its gain and what it was used for; a click shows it', async () => {
  const [node] = await view.getChildren();
  const item = view.getTreeItem(node);
  assert.equal(item.label, 'silu: 1.8x estimated');
  assert.match(item.tooltip, /tried on 1 kernel/);
  const [used] = await view.getChildren(node);
  assert.equal(view.getTreeItem(used).label, 'gelu: accepted');
  assert.deepEqual(item.command.arguments, [pair]);
});

test('the difference is of the texts that the memory has', async () => {
  await view.show(pair);
  const [[name, slow, fast, title]] = vscode.person.ran;
  assert.deepEqual([name, title], ['vscode.diff', 'silu: remembered, 1.8x estimated']);
  assert.equal(await view.provideTextDocumentContent(slow), 'before');
  assert.equal(await view.provideTextDocumentContent(fast), 'after');
  assert.deepEqual(asked, [['pairs', { id: 'abcd' }], ['pairs', { id: 'abcd' }]]);
});

test('a row is forgotten by its id, without asking for one', async () => {
  await memory.forget(server, { pair });
  assert.deepEqual(asked, [['forget', { id: 'abcd' }]]);
  assert.equal(vscode.person.said.length, 0);
});

test('the list is asked for again when something that decides has ended, not on every save', () => {
  let fired = 0;
  view.onDidChangeTreeData(() => (fired += 1));
  for (const jobs of [[{ job: 'p', kind: 'profile' }], [{ job: 'a', kind: 'accept' }], [{ job: 'a', kind: 'accept' }], []]) view.tell({ jobs });
  assert.equal(fired, 1);
});
