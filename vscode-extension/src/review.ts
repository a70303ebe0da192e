// What stands at the head of a suggestion's diff: what it gains, what was checked, and the decisions as words.
import * as vscode from 'vscode';
import type { Version } from './versions';

const DECISIONS = ['accelopt.acceptSuggestion', 'accelopt.rejectSuggestion', 'accelopt.explainSuggestion'];

export class ReviewThreads implements vscode.Disposable {
  private readonly controller = vscode.comments.createCommentController('accelopt.review', 'AccelOpt');
  private readonly threads = new Map<string, vscode.CommentThread>();

  constructor() {
    this.controller.options = { prompt: '', placeHolder: '' };
  }

  /** Show what is known of a version where its text first differs from the file's. */
  show(candidate: vscode.Uri, file: vscode.TextDocument, text: vscode.TextDocument, version: Version): void {
    this.close(candidate);
    const line = firstDifference(file, text);
    const thread = this.controller.createCommentThread(candidate, new vscode.Range(line, 0, line, 0), []);
    thread.canReply = false;
    thread.collapsibleState = vscode.CommentThreadCollapsibleState.Expanded;
    this.threads.set(candidate.toString(), thread);
    this.tell(candidate, version, false);
  }

  /** Say again what is known of a version; `outdated`: the file has another text by now. */
  tell(candidate: vscode.Uri, version: Version, outdated: boolean): void {
    const thread = this.threads.get(candidate.toString());
    if (!thread) {
      return;
    }
    const [times, ...rest] = version.review.split('\n\n');
    const body = new vscode.MarkdownString([decisions(candidate, outdated), ...rest].join('\n\n'), true);
    body.isTrusted = { enabledCommands: DECISIONS };
    thread.label = outdated ? vscode.l10n.t('Outdated: the file has changed') : times.replace(/\*\*|\\/g, ''); // plain text
    thread.comments = [{ author: { name: 'AccelOpt' }, body, mode: vscode.CommentMode.Preview }];
  }

  /** The candidates that are looked at. */
  get shown(): vscode.Uri[] {
    return [...this.threads.keys()].map((address) => vscode.Uri.parse(address));
  }

  close(candidate: vscode.Uri): void {
    this.threads.get(candidate.toString())?.dispose();
    this.threads.delete(candidate.toString());
  }

  dispose(): void {
    this.controller.dispose();
  }
}

function decisions(candidate: vscode.Uri, outdated: boolean): string {
  const link = (icon: string, title: string, command: string) =>
    `[$(${icon}) ${title}](command:accelopt.${command}?${encodeURIComponent(JSON.stringify([candidate.toString()]))})`;
  const reject = link('close', vscode.l10n.t('Reject'), 'rejectSuggestion');
  const explain = link('info', vscode.l10n.t('Explain'), 'explainSuggestion');
  return outdated
    ? [`$(warning) ${vscode.l10n.t('It was checked with an earlier text, so it cannot be accepted. Optimize again.')}`, explain].join(' · ')
    : [link('check', vscode.l10n.t('Accept'), 'acceptSuggestion'), reject, explain].join(' · ');
}

function firstDifference(one: vscode.TextDocument, other: vscode.TextDocument): number {
  const most = Math.min(one.lineCount, other.lineCount);
  for (let line = 0; line < most; line++) {
    if (one.lineAt(line).text !== other.lineAt(line).text) {
      return line;
    }
  }
  return Math.max(0, other.lineCount - 1);
}
