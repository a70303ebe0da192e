// The panel with the charts: its policy, and its script in a page where nothing may be evaluated.
import assert from 'node:assert';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { load } from './load.mjs';
import { open } from './page_stand_in.mjs';

const root = path.dirname(path.dirname(new URL(import.meta.url).pathname));
const script = fs.readFileSync(path.join(root, 'dist/panel.js'), 'utf8');
const { module: { pictures }, vscode } = await load('pictures');

const channel = (field, more) => ({ field, type: 'nominal', ...more });
const spec = {
  $schema: 'https://vega.github.io/schema/vega-lite/v6.json', width: 720, height: 44, params: [{ name: 'cursor', value: 0 }],
  layer: [{
    mark: { type: 'bar', strokeWidth: 2 },
    data: { values: [{ row: '3  a', start: 0, share: 20, line: 3 }, { row: '4  b', start: 0, share: 60, line: 4 }] },
    encoding: {
      x: { field: 'start', type: 'quantitative', scale: { domain: [0, 60] }, axis: { values: [0, 20, 40], format: ',~r' } },
      x2: { field: 'share' }, y: channel('row', { sort: null }),
      stroke: { condition: { test: 'datum.line === cursor', value: 'red' }, value: 'transparent' },
    },
  }],
};
const chart = { name: 'lines', title: 'Cost by line', about: 'Shares.', spec, columns: ['line', 'share'], rows: [['3', '20 %'], ['4', '60 %']], lines: [3, 4], versions: [] };
const shown = { title: 'silu', note: 'est. 2 us', tableTitle: 'As a table', charts: [chart] };
const barsOf = (document) => [...document.all()].filter((one) => one.attributes['aria-roledescription'] === 'bar');
const frames = (document) => barsOf(document).map((bar) => bar.style.stroke ?? bar.attributes.stroke).join();

/** A panel of the extension, the requests that it sends, and a way to put the cursor into a file. */
function extension() {
  vscode.begin();
  const asked = [];
  const server = {
    isRunning: true, onPictures: () => undefined, onStarted: (listener) => { server.restarted = listener; },
    execute: async (name, argument) => { asked.push([name, argument]); return { kernel: 'silu', title: 'silu', note: '', schedule: false, charts: [chart] }; },
  };
  const panel = new pictures.PicturePanel({ extensionUri: 'file:///extension' }, server);
  const look = async (uri) => {
    vscode.window.activeTextEditor = { document: { languageId: 'python', uri: new URL(uri) }, selection: { active: { line: 3 } } };
    await panel.show();
  };
  return { asked, server, look };
}

/** Wait until the page shows what `look` looks for, or for half a minute in vain. */
async function until(look) {
  for (const end = Date.now() + 30_000; !look() && Date.now() < end;) await new Promise((resolve) => setTimeout(resolve, 10));
}

test('the page runs one script by its nonce, evaluates nothing and loads nothing else', () => {
  const [one, other] = [pictures.page('vscode:', 'panel.js'), pictures.page('vscode:', 'panel.js')];
  const [, policy] = /Content-Security-Policy" content="([^"]+)"/.exec(one);
  assert.ok(policy.startsWith("default-src 'none'"));
  assert.ok(!/unsafe|https?:|\*/.test(policy), policy);
  const [, nonce] = /script-src 'nonce-([^']+)'/.exec(policy);
  assert.deepEqual([...one.matchAll(/<script[^>]*>/g)].map(([tag]) => tag), [`<script nonce="${nonce}" src="panel.js">`]);
  assert.ok(!other.includes(nonce));
});

test('the script draws charts without evaluating text, and says which line was chosen', async () => {
  const { document, posted, tell } = open(script);
  assert.deepEqual(posted.map(({ ready }) => ready), [true]);
  tell({ pictures: shown, cursor: 4 });
  await until(() => frames(document) === 'transparent,red');
  tell({ cursor: 3 });
  await until(() => frames(document) === 'red,transparent');
  const rows = document.querySelectorAll('tr[data-line]');
  assert.deepEqual(rows.map((row) => row.hasAttribute('aria-current')), [true, false]);
  const buttons = [...document.all()].filter(({ localName }) => localName === 'button');
  buttons[1].dispatch('click');
  assert.equal(posted.at(-1).line, 4);
  assert.equal(document.getElementById('chart-lines').attributes['aria-label'], 'Cost by line. Shares.');
});

test('a version of a search leads to its diff, by its mark and in the table', async () => {
  const { document, posted, tell } = open(script);
  const tree = { ...chart, name: 'search', columns: ['version', 'time'], rows: [['1', '2 us'], ['2', '1 us']], lines: [], versions: ['', 'abcd'] };
  tell({ pictures: { ...shown, charts: [tree] } });
  await until(() => [...document.all()].some(({ localName }) => localName === 'button'));
  const buttons = [...document.all()].filter(({ localName }) => localName === 'button');
  assert.deepEqual(buttons.map(({ textContent }) => textContent), ['2']);
  buttons[0].dispatch('click');
  assert.deepEqual(posted.at(-1).version, 'abcd');
  const { look } = extension();
  await look('file:///a.py');
  await vscode.person.panels[0].tell({ version: 'abcd' });
  assert.deepEqual(vscode.person.ran, [['accelopt.showSuggestion', { id: 'abcd', uri: 'file:///a.py' }]]);
});

test('what came before is there again after new results: an open table, the focus', async () => {
  const { document, tell } = open(script);
  tell({ pictures: shown });
  await until(() => barsOf(document).length === 2);
  const before = document.getElementById('chart-lines');
  document.getElementById('table-lines').open = true;
  document.getElementById('lines-1').focus();
  tell({ pictures: shown });
  await until(() => document.getElementById('chart-lines') !== before && barsOf(document).length === 2);
  assert.ok(document.getElementById('table-lines').open);
  assert.equal(document.activeElement, document.getElementById('lines-1'));
});

test('nobody but the panel loads the chart library', () => {
  const extension = fs.readFileSync(path.join(root, 'dist/extension.js'), 'utf8');
  assert.ok(script.includes('vega-lite') && !extension.includes('vega-lite'));
  assert.ok(script.length < 1_000_000, `${script.length} bytes`);
});

test('the server hears when nobody looks at a file\'s charts any more', async () => {
  const { asked, server, look } = extension();
  await look('file:///a.py');
  const [view] = vscode.person.panels;
  view.tell({ ready: true });
  await look('file:///a.py');
  assert.deepEqual(asked.filter(([, { shown }]) => shown === false), []);
  await look('file:///b.py');
  view.dispose();
  const left = asked.filter(([, { shown }]) => shown === false);
  assert.deepEqual(left, ['a', 'b'].map((name) => ['pictures', { uri: `file:///${name}.py`, shown: false }]));
  await look('file:///a.py');
  server.isRunning = false;
  vscode.person.panels[1].dispose();
  assert.equal(asked.filter(([, { shown }]) => shown === false).length, 2);
});

test('a server that was started again is asked for the charts of an open panel', async () => {
  const { asked, server, look } = extension();
  server.restarted();
  assert.deepEqual(asked, [], 'nobody looks');
  await look('file:///a.py');
  vscode.person.panels[0].tell({ ready: true });
  const before = asked.length;
  server.restarted();
  await until(() => asked.length > before);
  assert.deepEqual(asked.slice(before).map(([name, { uri }]) => [name, uri]), [['pictures', 'file:///a.py']]);
});
