// As much of the language client as a start asks for; `clients` are those that were made.
export const State = { Stopped: 1, Running: 2 };
export const RevealOutputChannelOn = { Never: 4 };
export const TransportKind = { stdio: 0 };
export const clients = [];

export class LanguageClient {
  constructor(id, name, server, options) {
    Object.assign(this, { server, options, state: State.Stopped, handlers: {}, sent: [] });
    clients.push(this);
  }
  onNotification(method, handler) { this.handlers[method] = handler; }
  onRequest(method, handler) { this.handlers[method] = handler; }
  onDidChangeState(listener) { this.changed = listener; }
  async start() { this.to(State.Running); }
  async stop() { this.to(State.Stopped); }
  isRunning() { return this.state === State.Running; }
  async sendRequest(method, params) {
    this.sent.push(params);
    return undefined;
  }
  to(state) {
    this.state = state;
    this.changed?.({ newState: state });
  }
}
