// The editor's own models, lent to the server: asked only by a search or an explanation that a person began.
import * as vscode from 'vscode';

interface Question {
  model: string;
  system: string;
  user: string;
  answerTokens: number;
  justification: string;
}

interface Reply {
  text?: string;
  tokensIn?: number;
  tokensOut?: number;
  fault?: string;
  message?: string;
}

/** An answer that goes on beyond what was asked for ends at this many characters per token. */
const CHARACTERS_PER_TOKEN = 12;

/** Forks of VS Code may lack the API. */
export const lendsModels = (): boolean => typeof vscode.lm?.selectChatModels === 'function';

export const nameOf = (model: vscode.LanguageModelChat): string => `${model.vendor}/${model.family}`;

/** Ask the model of that very name, never another one. A fault comes back as a code and a line. */
export async function complete(question: Question, token: vscode.CancellationToken): Promise<Reply> {
  if (!lendsModels()) {
    return { fault: 'unsupported' };
  }
  const there = await vscode.lm.selectChatModels();
  const model = there.find((one) => [nameOf(one), one.id].includes(question.model));
  if (!model) {
    const names = there.map(nameOf).join(', ');
    return { fault: 'no-model', message: names ? `it has ${names}` : 'it has none' };
  }
  // The API has no role for what comes first: both are messages of the user.
  const messages = [question.system, question.user].map((said) => vscode.LanguageModelChatMessage.User(said));
  const stop = new vscode.CancellationTokenSource();
  const listening = token.onCancellationRequested(() => stop.cancel());
  let text = '';
  const reply = async (more: Reply): Promise<Reply> => ({ text, ...(await tokens(model, messages, text)), ...more });
  try {
    const response = await model.sendRequest(messages, { justification: question.justification }, stop.token);
    for await (const part of response.text) {
      text += part;
      if (text.length > question.answerTokens * CHARACTERS_PER_TOKEN) {
        stop.cancel();
        break;
      }
    }
    return await reply({});
  } catch (error) {
    return text ? await reply(faultOf(error, token)) : faultOf(error, token);
  } finally {
    listening.dispose();
    stop.dispose();
  }
}

async function tokens(
  model: vscode.LanguageModelChat, messages: vscode.LanguageModelChatMessage[], text: string,
): Promise<Reply> {
  try {
    const counts = await Promise.all(messages.map((message) => model.countTokens(message)));
    return { tokensIn: counts.reduce((sum, count) => sum + count, 0), tokensOut: await model.countTokens(text) };
  } catch {
    return {}; // the server estimates them, and says so
  }
}

function faultOf(error: unknown, token: vscode.CancellationToken): Reply {
  const message = error instanceof Error ? error.message : String(error);
  if (token.isCancellationRequested || error instanceof vscode.CancellationError) {
    return { fault: 'cancelled' };
  }
  if (error instanceof vscode.LanguageModelError) {
    const known = new Map([
      [vscode.LanguageModelError.NoPermissions().code, 'no-permission'],
      [vscode.LanguageModelError.Blocked().code, 'blocked'],
      [vscode.LanguageModelError.NotFound().code, 'no-model'],
    ]);
    return { fault: known.get(error.code) ?? 'failed', message };
  }
  return { fault: 'failed', message };
}
