// The server of coding agents (`accelopt mcp`), offered to the editor's own agents for each folder.
import * as vscode from 'vscode';
import { mcpCommand } from './environment';
import type { Server } from './server';

interface Provider {
  onDidChangeMcpServerDefinitions: vscode.Event<void>;
  provideMcpServerDefinitions(): unknown[];
}

/** As much of a newer version of the API as is used; `engines` is older, and forks lack it. */
interface Mcp {
  registerMcpServerDefinitionProvider?(id: string, provider: Provider): vscode.Disposable;
}
type Definitions = { McpStdioServerDefinition: new (label: string, command: string, args: string[]) => unknown };

/** Offer the program that the server was started from, for each folder; in a workspace that is not trusted nothing. */
export function registerMcp(server: Server): vscode.Disposable[] {
  const lm = vscode.lm as Mcp | undefined;
  const register = lm?.registerMcpServerDefinitionProvider?.bind(lm);
  if (!register) {
    return [];
  }
  const { McpStdioServerDefinition: Definition } = vscode as unknown as Definitions;
  return [register('accelopt', {
    onDidChangeMcpServerDefinitions: server.onStarted,
    provideMcpServerDefinitions: () => {
      const { program } = server;
      const folders = vscode.workspace.isTrusted ? vscode.workspace.workspaceFolders ?? [] : [];
      return program ? folders.map(({ name, uri }) => new Definition(`AccelOpt: ${name}`, ...mcpCommand(program, uri.fsPath))) : [];
    },
  })];
}
