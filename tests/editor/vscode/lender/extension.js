// Lends two language models. Parrot says one sentence, whatever it is asked; Tidy plans and writes one change, to leave
// out the additions of zero, when the person's instructions ask for it.
const vscode = require('vscode');

const model = (id, name) => ({
  id: `${id}-1`, name, family: id, version: '1', maxInputTokens: 100_000, maxOutputTokens: 4_000, capabilities: {}, isUserSelectable: true,
});
const textOf = (message) => message.content.map((part) => part.value ?? '').join('');

function tidy(system, user) {
  if (system.startsWith('You plan')) {
    const zeros = [...user.matchAll(/^\W*(\d+)\b.*nl\.add\(\w+, 0\.0\)/gm)].map(([, line]) => Number(line));
    const run = zeros.filter((line, index) => line === zeros[0] + index);
    if (!run.length || !user.includes('leave out what adds zero')) return 'There is nothing to leave out.';
    return `LINES ${run[0]}-${run.at(-1)}\nLeave out what adds zero: fewer instructions are issued.`;
  }
  if (system.startsWith('You carry out')) {
    const place = user.split('# <<< change 1')[1].split('# >>> change 1')[0];
    const zeros = [...place.matchAll(/(\w+) = nl\.add\((\w+), 0\.0\)/g)];
    return `<<<<<<< CHANGE 1\n    ${zeros.at(-1)[1]} = ${zeros[0][2]}\n>>>>>>>`;
  }
  return 'It issues fewer instructions.';
}

exports.activate = (context) => {
  context.subscriptions.push(vscode.lm.registerLanguageModelChatProvider('toy', {
    provideLanguageModelChatInformation: () => [model('parrot', 'Parrot'), model('tidy', 'Tidy')],
    async provideLanguageModelChatResponse({ family }, messages, options, progress) {
      const [system, user] = messages.map(textOf);
      const answer = family === 'tidy' ? tidy(system, user) : 'It is what it is.';
      for (let at = 0; at < answer.length; at += 16) progress.report(new vscode.LanguageModelTextPart(answer.slice(at, at + 16)));
    },
    provideTokenCount: async (_, text) => (typeof text === 'string' ? text : textOf(text)).split(/\s+/).length,
  }));
};
