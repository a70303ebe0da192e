// As much of the editor's API as the tests of the first run ask for. `person` answers what the editor asks, in order.
export const l10n = { t: (text, ...given) => text.replace(/\{(\d)\}/g, (_, at) => given[at]) };
const disposable = { dispose() {} };

/** What a test sets: `settings` by dotted name, `answers` to questions, `trusted`; and what it reads: `said`, `ran`, `context`. */
export const person = { settings: {}, project: {}, answers: [], trusted: false, said: [], ran: [], context: {}, picks: [], fixes: [], panels: [], extensions: [] };
export function begin() {
  Object.assign(person, { settings: {}, project: {}, answers: [], trusted: false, said: [], ran: [], context: {}, picks: [], fixes: [], panels: [], extensions: [] });
  workspace.workspaceFolders = [];
  env.remoteName = undefined;
  window.activeTextEditor = undefined;
}

const answer = (choices) => {
  const wanted = person.answers.shift();
  return wanted instanceof RegExp ? choices.find((one) => wanted.test(one.label ?? one)) : wanted;
};
const say = async (message, ...choices) => {
  person.said.push({ message, choices });
  return answer(choices);
};

export const env = { remoteName: undefined };
export const workspace = {
  get isTrusted() { return person.trusted; },
  asRelativePath: (uri) => uri.pathname,
  workspaceFolders: [],
  textDocuments: [],
  getWorkspaceFolder: () => workspace.workspaceFolders[0],
  onDidChangeTextDocument: () => disposable,
  openTextDocument: async (uri) => ({ uri }),
  getConfiguration: (section) => {
    const name = (key) => `${section}.${key}`;
    return {
      get: (key, usual) => person.project[name(key)] ?? person.settings[name(key)] ?? usual,
      inspect: (key) => ({ globalValue: person.settings[name(key)], workspaceValue: person.project[name(key)] }),
      update: async (key, value) => { person.settings[name(key)] = value; },
    };
  },
};
export const ConfigurationTarget = { Global: 1, Workspace: 2 };
export const ProgressLocation = { Notification: 15 };
export const QuickPickItemKind = { Separator: -1 };
export const window = {
  activeTextEditor: undefined,
  onDidChangeTextEditorSelection: () => disposable,
  createWebviewPanel: () => {
    const panel = { posted: [], reveal() {}, onDidDispose: (listener) => (panel.dispose = listener) };
    panel.webview = { asWebviewUri: String, onDidReceiveMessage: (listener) => (panel.tell = listener), postMessage: async (message) => panel.posted.push(message) };
    person.panels.push(panel);
    return panel;
  },
  withProgress: (_, work) => work({ report() {} }, { isCancellationRequested: false, onCancellationRequested: () => disposable }),
  showInformationMessage: say,
  showWarningMessage: say,
  showErrorMessage: say,
  showInputBox: async () => answer([]),
  createQuickPick: () => {
    const list = { onDidAccept: (listener) => (list.accept = listener), onDidHide: (listener) => (list.hide = listener), show() {}, dispose() {} };
    person.picks.push(list);
    return list;
  },
  showQuickPick: async (items, options) => {
    const shown = await items;
    person.picks.push({ items: shown, ...options });
    return answer(shown);
  },
  setStatusBarMessage: (message) => person.said.push({ message, choices: [] }),
};
export const commands = {
  executeCommand: async (...call) => {
    if (call[0] === 'vscode.executeCodeActionProvider') return person.fixes;
    if (call[0] === 'setContext') person.context[call[1]] = call[2];
    else person.ran.push(call);
  },
};
export const extensions = { getExtension: (name) => person.extensions.includes(name) || undefined };
/** What newer versions have, which a test adds. */
export const lm = {};
export const chat = {};
export class LanguageModelTextPart {
  constructor(value) { this.value = value; }
}
export class LanguageModelToolResult {
  constructor(content) { this.content = content; }
}
export class McpStdioServerDefinition {
  constructor(label, command, args) { Object.assign(this, { label, command, args }); }
}
export class EventEmitter {
  listeners = [];
  event = (listener) => this.listeners.push(listener) && disposable;
  fire = (value) => this.listeners.forEach((listener) => listener(value));
  dispose() {}
}
export class Range {}
export const ViewColumn = { Beside: -2 };
export const Uri = {
  parse: (text) => new URL(text),
  file: (path) => new URL(`file://${path}`),
  from: ({ scheme, path, query }) => ({ scheme, path, query }),
  joinPath: (base, ...names) => [base, ...names].join('/'),
};
export const Disposable = { from: () => disposable };
export const TreeItemCollapsibleState = { None: 0, Collapsed: 1, Expanded: 2 };
export class TreeItem {
  constructor(label, collapsibleState = 0) { Object.assign(this, { label, collapsibleState }); }
}
export class ThemeIcon {
  constructor(id) { this.id = id; }
}
export class MarkdownString {
  constructor(value) { this.value = value; }
}
