// A model that another extension lends: asked after a click, with the person's consent, and labelled in the explanation.
// usage: node lent.mjs URL SCREENSHOTS
import { drive, textOf } from './page.mjs';

const [url, shots] = process.argv.slice(2);

await drive(url, shots, async ({ page, seen, mark, shot, lens, openFile, command, until, preview }) => {
  await page.waitForSelector('.explorer-folders-view .monaco-list-row >> text=small_silu.py', { timeout: 60_000 });
  await openFile('small_silu.py');
  await lens(/est\./).waitFor({ timeout: 90_000 });
  mark('lens');

  await page.locator('.view-line', { hasText: /def\s/ }).filter({ hasText: 'silu' }).first().click();
  await command('AccelOpt: Optimize the Kernel at the Cursor');
  const question = page.locator('.notification-toast', { hasText: /be sent to toy\/parrot of this editor/ });
  await question.waitFor({ timeout: 60_000 });
  seen.question = await textOf(question);
  mark('asked for consent');
  await shot('9-consent');
  await question.locator('.monaco-button', { hasText: 'Send it from now on' }).click();

  await lens(/proved faster/).waitFor({ timeout: 240_000 });
  await lens(/cancel/).waitFor({ state: 'detached', timeout: 240_000 });
  mark('search ended');
  await until(() => lens(/proved faster/).click({ timeout: 4000 }), '.monaco-diff-editor');

  await page.click('.editor-actions a[aria-label^="Explain This Version"]');
  const dialog = page.locator('.monaco-dialog-box');
  await dialog.locator('.monaco-button', { hasText: 'Allow' }).waitFor({ timeout: 60_000 });
  seen.access = await textOf(dialog);
  mark('asked for access');
  await shot('10-access');
  await dialog.locator('.monaco-button', { hasText: 'Allow' }).click();
  await preview.locator('strong', { hasText: 'Written by the model toy/parrot' }).waitFor({ timeout: 60_000 });
  seen.explanation = (await preview.locator('body').innerText()).replaceAll('\u00a0', ' ');
  mark('explanation');
  await shot('11-lent-explanation');
});
