// A model that another extension lends: asked after a click, with the person's consent, and labelled in the explanation;
// and a search that is paused on the way.
// usage: node lent.mjs URL SCREENSHOTS
import { drive } from './page.mjs';

const [url, shots] = process.argv.slice(2);

await drive(url, shots, async ({ page, seen, mark, shot, lens, openFile, command, until, preview }) => {
  await page.waitForSelector('.explorer-folders-view .monaco-list-row >> text=small_silu.py', { timeout: 60_000 });
  await openFile('small_silu.py');
  await lens(/est\./).waitFor({ timeout: 180_000 });
  mark('lens');

  await page.locator('.view-line', { hasText: /def\s/ }).filter({ hasText: 'silu' }).first().click();
  await command('AccelOpt: Optimize the Kernel at the Cursor');
  const question = page.locator('.notification-toast', { hasText: /be sent to toy\/parrot of this editor/ });
  await question.waitFor({ timeout: 60_000 });
  seen.question = await question.innerText();
  mark('asked for consent');
  await shot('9-consent');
  await question.locator('.monaco-button', { hasText: 'Send it from now on' }).click();

  await until(() => lens(/^pause$/).click({ timeout: 4000 }), '.codelens-decoration a >> text=paused (resume)');
  mark('paused');
  await shot('10-paused');
  await lens(/paused \(resume\)/).click();
  await lens(/paused/).waitFor({ state: 'detached', timeout: 60_000 });

  await lens(/proved faster/).waitFor({ timeout: 240_000 });
  await lens(/cancel/).waitFor({ state: 'detached', timeout: 240_000 });
  mark('search ended');
  await until(() => lens(/proved faster/).click({ timeout: 4000 }), '.monaco-diff-editor');

  await page.click('.editor-actions a[aria-label^="Explain This Version"]');
  await preview.locator('strong', { hasText: 'Written by the model toy/parrot' }).waitFor({ timeout: 60_000 });
  seen.explanation = (await preview.locator('body').innerText()).replaceAll('\u00a0', ' ');
  mark('explanation');
  await shot('11-lent-explanation');
});
