// What stands at the head of a suggestion's diff: what it gains, what was checked, and the decisions as words.
import * as vscode from 'vscode';
import type { Version } from './versions';

const DECISIONS = ['acceptSuggestion', 'rejectSuggestion', 'explainSuggestion', 'checkSuggestion', 'showSuggestion'].map((name) => `accelopt.${name}`);

export class ReviewThreads implements vscode.Disposable {
  private readonly controller = vscode.comments.createCommentController('accelopt.review', 'AccelOpt');
  private readonly threads = new Map<string, vscode.CommentThread>();

  constructor() {
    this.controller.options = { prompt: '', placeHolder: '' };
  }

  /** Show what is known of a version where its text first differs from the file's. */
  show(candidate: vscode.Uri, file: vscode.TextDocument, text: vscode.TextDocument, version: Version, known: Version[]): void {
    this.close(candidate);
    const line = firstDifference(file, text);
    const thread = this.controller.createCommentThread(candidate, new vscode.Range(line, 0, line, 0), []);
    thread.canReply = false;
    thread.collapsibleState = vscode.CommentThreadCollapsibleState.Expanded;
    this.threads.set(candidate.toString(), thread);
    this.tell(candidate, version, known);
  }

  /** Say again what is known of a version, which fits the file's text where it is among the `known` ones. */
  tell(candidate: vscode.Uri, version: Version, known: Version[]): void {
    const thread = this.threads.get(candidate.toString());
    if (!thread) {
      return;
    }
    const outdated = !known.includes(version);
    const [times, ...rest] = version.review.split('\n\n');
    const parts = [decisions(candidate, outdated), ...rest, ...(outdated ? [] : choices(candidate, version, known))];
    const body = new vscode.MarkdownString(parts.join('\n\n'), true);
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

function link(title: string, command: string, ...values: unknown[]): string {
  return `[${title}](command:accelopt.${command}?${encodeURIComponent(JSON.stringify(values))})`;
}

function decisions(candidate: vscode.Uri, outdated: boolean): string {
  const decision = (icon: string, title: string, command: string) => link(`$(${icon}) ${title}`, command, candidate.toString());
  const reject = decision('close', vscode.l10n.t('Reject'), 'rejectSuggestion');
  const explain = decision('info', vscode.l10n.t('Explain'), 'explainSuggestion');
  const again = decision('sync', vscode.l10n.t('Check again'), 'checkSuggestion');
  const why = `$(warning) ${vscode.l10n.t('It was checked with an earlier text, so it cannot be accepted.')}`;
  return (outdated ? [why, again, explain] : [decision('check', vscode.l10n.t('Accept'), 'acceptSuggestion'), reject, explain]).join(' · ');
}

/** Which steps to take: the first ones, where that version is known too, or all but one, which is checked then. */
function choices(candidate: vscode.Uri, { uri, steps }: Version, known: Version[]): string[] {
  if (steps.length < 2) {
    return [];
  }
  const without = steps.map((_, at) => link(`${at + 1}`, 'checkSuggestion', candidate.toString(), at + 1));
  const first = steps.slice(0, -1).flatMap((id, at) => {
    const version = known.find((one) => one.id === id);
    return version ? [link(`${at + 1}`, 'showSuggestion', { id, uri, title: version.title })] : [];
  });
  const checked = first.length ? [`${vscode.l10n.t('Checked up to step')} ${first.join(' · ')}`] : [];
  return [[...checked, `${vscode.l10n.t('Check without step')} ${without.join(' · ')}`].join('. ')];
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
