/// <reference lib="dom" />
/// <reference lib="dom.iterable" />
// The panel's page: draws the charts that the server describes, and tells the extension which line was chosen.
// Vega's expressions are interpreted, not compiled: the page allows no `eval`.
import { parse, View } from 'vega';
import { expressionInterpreter } from 'vega-interpreter';
import { compile, type TopLevelSpec } from 'vega-lite';
import type { Chart, Pictures } from './pictures.js';

declare function acquireVsCodeApi(): { postMessage(message: unknown): void };

const editor = acquireVsCodeApi();
let shown: Pictures | undefined;
let cursor = 0;
let views: View[] = [];

window.addEventListener('message', ({ data }: MessageEvent<{ pictures?: Pictures; cursor?: number }>) => {
  cursor = data.cursor ?? cursor;
  if (data.pictures) {
    shown = data.pictures;
    void draw();
  } else {
    light();
  }
});
window.addEventListener('resize', () => void draw());
editor.postMessage({ ready: true });

async function draw(): Promise<void> {
  const page = document.getElementById('page');
  if (!page || !shown) {
    return;
  }
  const open = new Set([...page.querySelectorAll('details[open]')].map((table) => table.id));
  const focused = document.activeElement?.id;
  views.forEach((view) => view.finalize());
  views = [];
  page.replaceChildren(element('h1', shown.title), element('p', shown.note), ...shown.charts.map((chart) => section(chart, open)));
  views = await Promise.all(shown.charts.map(view));
  (focused ? document.getElementById(focused) : undefined)?.focus();
  light();
}

/** Show which marks and rows are about the line of the editor's cursor. */
function light(): void {
  views.forEach((view) => view.signal('cursor', cursor).runAsync());
  for (const row of document.querySelectorAll<HTMLElement>('tr[data-line]')) {
    row.toggleAttribute('aria-current', row.dataset.line === String(cursor));
  }
}

async function view(chart: Chart): Promise<View> {
  const container = document.getElementById(`chart-${chart.name}`) as HTMLElement;
  const description = `${chart.title}. ${chart.about}`; // Vega makes it the container's label
  const wide = { ...chart.spec, description, width: container.clientWidth, autosize: { type: 'fit-x', contains: 'padding' } };
  const drawn = new View(parse(compile(wide as unknown as TopLevelSpec).spec, undefined, { ast: true }), {
    container, expr: expressionInterpreter, renderer: 'svg', hover: false,
  });
  drawn.addEventListener('click', (_, item) => choose(item?.datum ?? {}));
  await drawn.runAsync();
  return drawn;
}

function choose({ line, version }: { line?: unknown; version?: unknown }): void {
  if (typeof version === 'string' && version) {
    editor.postMessage({ version });
  } else if (typeof line === 'number' && line > 0) {
    editor.postMessage({ line });
  }
}

function section(chart: Chart, open: Set<string>): HTMLElement {
  const picture = element('div');
  picture.id = `chart-${chart.name}`;
  const made = element('section');
  made.append(element('h2', chart.title), element('p', chart.about), picture, table(chart, open));
  return made;
}

/** The same as text: for a screen reader, and for the keyboard, since each line is a button. */
function table(chart: Chart, open: Set<string>): HTMLElement {
  const details = document.createElement('details');
  details.id = `table-${chart.name}`;
  details.open = open.has(details.id);
  const head = element('tr');
  head.append(...chart.columns.map((name) => element('th', name)));
  const rows = chart.rows.map((cells, at) => {
    const row = element('tr');
    const line = chart.lines[at] ?? 0;
    const version = chart.versions[at];
    const leads = (column: string) => (line && column === 'line') || (version && column === 'version');
    row.append(...cells.map((cell, n) => (leads(chart.columns[n]) ? cellButton(cell, `${chart.name}-${at}`, { line, version }) : element('td', cell))));
    if (line) {
      row.dataset.line = String(line);
    }
    return row;
  });
  const body = element('table');
  body.append(head, ...rows);
  details.append(element('summary', shown?.tableTitle ?? ''), body);
  return details;
}

function cellButton(text: string, id: string, chosen: { line?: number; version?: string }): HTMLElement {
  const button = element('button', text);
  button.id = id;
  button.addEventListener('click', () => choose(chosen));
  const cell = element('td');
  cell.append(button);
  return cell;
}

function element(tag: string, text = ''): HTMLElement {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}
