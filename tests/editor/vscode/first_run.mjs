// A machine without the server, and a Triton kernel: the message is closed, the menu installs, what is missing has a fix,
// and an example shows its cost. The guide has ticked what is true then, and the last step once a version is accepted.
// usage: node first_run.mjs URL SCREENSHOTS
import { drive, textOf } from './page.mjs';

const [url, shots] = process.argv.slice(2);

await drive(url, shots, async ({ page, seen, mark, shot, settled, lens, openFile, command, status, toast, until, showBest }) => {
  const rows = page.locator('.quick-input-list .monaco-list-row');
  const menu = async (text) => {
    await status(text).click();
    await rows.first().waitFor();
    const labels = await rows.locator('.label-name').allTextContents(); // a row's text holds its separator's too
    return labels.map((label) => label.replaceAll('\u00a0', ' ').trim());
  };
  const ticked = (title) => page.locator('.getting-started-step', { has: page.locator('.codicon-getting-started-step-checked.complete') })
    .locator('.step-title', { hasText: title });
  await page.waitForSelector('.explorer-folders-view .monaco-list-row >> text=triton_softmax.py', { timeout: 60_000 });
  await openFile('triton_softmax.py');
  const offer = toast(/Install AccelOpt.s server/);
  await settled(offer);
  seen.offer = await offer.innerText();
  mark('offered');
  await shot('20-offer');
  await offer.hover();
  await offer.locator('.codicon-notifications-clear').click();
  await offer.waitFor({ state: 'detached' });

  await command('AccelOpt: Restart the Server');
  await rows.filter({ hasText: 'Install the Server Only' }).waitFor();
  await page.keyboard.press('Escape');
  seen.stopped = (await menu('Not installed')).slice(0, 3);
  await shot('21-menu');
  await rows.filter({ hasText: 'Install the Server Only' }).click();
  await page.waitForSelector('.statusbar-item >> text=/AccelOpt$/', { timeout: 300_000 });
  mark('installed');

  await page.waitForSelector('.squiggly-info', { timeout: 120_000 });
  seen.errors = await page.locator('.squiggly-error').count();
  await page.locator('.squiggly-info').first().waitFor();
  seen.lacking = (await menu(/AccelOpt/)).slice(0, 2);
  await shot('22-no-torch');
  await page.keyboard.press('Escape');

  await command('AccelOpt: Open an Example Kernel');
  await page.waitForSelector('.tabs-container .tab.active >> text=nki_silu.py', { timeout: 60_000 });
  await lens(/est\./).waitFor({ timeout: 120_000 });
  seen.lens = await textOf(lens(/est\./));
  mark('first number');
  await shot('23-example');

  await command('AccelOpt: Check the Installation...');
  await rows.filter({ hasText: 'Install torch and Triton' }).first().waitFor({ timeout: 120_000 });
  seen.doctor = (await rows.allInnerTexts()).map((text) => text.replaceAll('\u00a0', ' ').split('\n')[0].trim());
  await shot('24-doctor');
  await page.keyboard.press('Escape');

  await command('AccelOpt: Open the Guide');
  await page.locator('.getting-started-step .codicon-getting-started-step-checked').nth(2).waitFor();
  seen.ticked = await ticked().allInnerTexts();
  mark('guide');
  await shot('25-guide');

  await page.locator('.tabs-container .tab', { hasText: 'nki_silu.py' }).click();
  await until(() => lens(/Optimize/).click({ timeout: 4000 }), '.statusbar-item >> text=/Optimizing silu/');
  await lens(/\d checked:/).waitFor({ timeout: 250_000 });
  mark('suggested');
  await showBest();
  await shot('26-suggestion');
  await page.click('.editor-actions a[aria-label^="Accept This Version"]');
  await page.waitForSelector('.monaco-diff-editor', { state: 'detached', timeout: 60_000 });
  mark('accepted');
  await page.locator('.tabs-container .tab', { hasText: 'Welcome' }).click();
  await ticked('Accept a faster version').waitFor();
  await shot('27-accepted');
});
