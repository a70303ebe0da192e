// As much of the editor's API as finding and filling an environment asks for.
export const l10n = { t: (text, ...given) => text.replace(/\{(\d)\}/g, (_, at) => given[at]) };
export const workspace = { isTrusted: false, workspaceFolders: [], getConfiguration: () => ({ get: (_, usual) => usual }) };
export const ProgressLocation = { Notification: 15 };
export const window = {
  withProgress: (_, work) => work({}, { isCancellationRequested: false, onCancellationRequested: () => ({ dispose() {} }) }),
  showInformationMessage: async (_, ...choices) => choices[0],
};
export const commands = { executeCommand: async () => undefined };
