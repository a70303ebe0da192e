// What a click on a kernel's numbers leads to: its cost on each target, one of which can be taken, or a new profile.
import * as vscode from 'vscode';
import type { Server } from './server';
import { keep } from './settings';

interface Costs {
  dialect: 'nki' | 'triton';
  target: string;
  costs: { target: string; time: string; bound: string }[];
}

type Item = vscode.QuickPickItem & { setting?: Record<string, string> };

/** List what the kernel costs on each target; what is not known yet is profiled while the list is open. */
export async function showCosts(server: Server, of: { uri: string; kernel: string }): Promise<void> {
  const list = vscode.window.createQuickPick<Item>();
  list.title = vscode.l10n.t('What {0} costs on each target', of.kernel);
  list.placeholder = vscode.l10n.t('Choose the target that costs are stated for');
  list.matchOnDescription = true;
  const again: Item = { label: `$(dashboard) ${vscode.l10n.t('Profile This File Again')}` };
  list.items = [again];
  list.busy = true;
  let open = true;
  list.onDidAccept(() => {
    const [chosen] = list.selectedItems;
    list.hide();
    void (chosen?.setting ? keep(chosen.setting) : server.execute('profile', { uri: of.uri }));
  });
  list.onDidHide(() => {
    open = false;
    list.dispose();
  });
  list.show();
  const answer = await server.execute<Costs>('targetCosts', of);
  if (open) {
    list.busy = false;
    list.items = [...(answer?.costs ?? []).map((cost) => item(cost, answer as Costs)), again];
  }
}

function item({ target, time, bound }: Costs['costs'][number], { dialect, target: now }: Costs): Item {
  const mark = target === now ? '$(check) ' : '';
  return { label: `${mark}${target}`, description: [time, bound].filter(Boolean).join(' · '), setting: { [`target.${dialect}`]: target } };
}
