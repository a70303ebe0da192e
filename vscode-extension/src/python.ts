// The interpreter that the person chose in the Python extension (ms-python.python), and its changes.
import * as vscode from 'vscode';

/** What is used of the Python extension's API, see @vscode/python-extension. */
interface PythonApi {
  ready: Promise<void>;
  environments: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { path: string };
    resolveEnvironment(environment: { path: string }): Promise<{ executable: { uri?: vscode.Uri } } | undefined>;
    onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
  };
}

/** The interpreter that is chosen for each folder; none without trust or without that extension. */
export async function chosenPythons(output: vscode.LogOutputChannel): Promise<Record<string, string>> {
  const api = vscode.workspace.isTrusted ? await pythonApi(output) : undefined;
  if (!api) {
    return {};
  }
  try {
    const chosen: Record<string, string> = {};
    for (const { uri } of vscode.workspace.workspaceFolders ?? []) {
      const active = api.environments.getActiveEnvironmentPath(uri);
      const python = (await api.environments.resolveEnvironment(active))?.executable.uri?.fsPath;
      if (python) {
        chosen[uri.fsPath] = python;
      }
    }
    return chosen;
  } catch (error) {
    output.warn(`The Python extension named no interpreter: ${error}`);
    return {};
  }
}

/** Call `changed` whenever another interpreter is chosen. */
export async function onChosenPython(
  context: vscode.ExtensionContext, output: vscode.LogOutputChannel, changed: () => void,
): Promise<void> {
  const api = await pythonApi(output);
  if (api) {
    context.subscriptions.push(api.environments.onDidChangeActiveEnvironmentPath(changed));
  }
}

async function pythonApi(output: vscode.LogOutputChannel): Promise<PythonApi | undefined> {
  const extension = vscode.extensions.getExtension<PythonApi>('ms-python.python');
  if (!extension) {
    return undefined;
  }
  try {
    const api = await extension.activate();
    await api.ready;
    return api.environments ? api : undefined;
  } catch (error) {
    output.warn(`The Python extension did not start: ${error}`);
    return undefined;
  }
}
