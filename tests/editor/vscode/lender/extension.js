// A language model that says one sentence, whatever it is asked.
const vscode = require('vscode');

const MODEL = {
  id: 'parrot-1', name: 'Parrot', family: 'parrot', version: '1', maxInputTokens: 100_000, maxOutputTokens: 4_000,
  capabilities: {}, isUserSelectable: true,
};

exports.activate = (context) => {
  context.subscriptions.push(vscode.lm.registerLanguageModelChatProvider('toy', {
    provideLanguageModelChatInformation: () => [MODEL],
    async provideLanguageModelChatResponse(model, messages, options, progress) {
      for (const part of ['It issues ', 'fewer instructions.']) progress.report(new vscode.LanguageModelTextPart(part));
    },
    provideTokenCount: async (model, text) => (typeof text === 'string' ? text.split(/\s+/).length : 100),
  }));
};
