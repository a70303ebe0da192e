// As much of a page's DOM as the panel and its charts ask for; `vm` runs the script in it without `eval`.
import vm from 'node:vm';

class Element {
  constructor(name, page) {
    Object.assign(this, { tagName: name, localName: name, ownerDocument: page, childNodes: [], attributes: {}, listeners: {}, id: '' });
    this.style = { setProperty: (key, value) => { this.style[key] = value; }, removeProperty: (key) => delete this.style[key] };
    this.dataset = {};
    this.clientWidth = 600;
  }
  get firstChild() { return this.childNodes[0] ?? null; }
  get lastChild() { return this.childNodes.at(-1) ?? null; }
  get nextSibling() { return this.parentNode?.childNodes[this.parentNode.childNodes.indexOf(this) + 1] ?? null; }
  get previousSibling() { return this.parentNode?.childNodes[this.parentNode.childNodes.indexOf(this) - 1] ?? null; }
  get textContent() { return this.text ?? this.childNodes.map((child) => child.textContent).join(''); }
  set textContent(text) { this.text = text; this.childNodes = []; }
  setAttribute(name, value) { this.attributes[name] = String(value); if (name === 'id') this.id = value; }
  setAttributeNS(_, name, value) { this.setAttribute(name, value); }
  getAttribute(name) { return this.attributes[name] ?? null; }
  hasAttribute(name) { return name in this.attributes; }
  removeAttribute(name) { delete this.attributes[name]; }
  toggleAttribute(name, on) { if (on) this.setAttribute(name, ''); else this.removeAttribute(name); }
  insertBefore(child, next) {
    child.remove();
    child.parentNode = this;
    const at = next ? this.childNodes.indexOf(next) : -1;
    this.childNodes.splice(at < 0 ? this.childNodes.length : at, 0, child);
    return child;
  }
  appendChild(child) { return this.insertBefore(child, null); }
  append(...children) { children.forEach((child) => this.appendChild(child)); }
  replaceChildren(...children) { this.childNodes = []; this.append(...children); }
  removeChild(child) { child.remove(); return child; }
  remove() {
    const siblings = this.parentNode?.childNodes;
    if (siblings) siblings.splice(siblings.indexOf(this), 1);
    this.parentNode = undefined;
  }
  addEventListener(type, listener) { (this.listeners[type] ??= []).push(listener); }
  removeEventListener() {}
  dispatch(type, event = {}) { (this.listeners[type] ?? []).forEach((listener) => listener({ type, target: this, ...event })); }
  getBoundingClientRect() { return { left: 0, top: 0, width: 600, height: 200 }; }
  focus() { this.ownerDocument.activeElement = this; }
  *all() { yield this; for (const child of this.childNodes) yield* child.all(); }
  querySelectorAll(query) {
    const wanted = { 'details[open]': (one) => one.localName === 'details' && one.open, 'tr[data-line]': (one) => one.localName === 'tr' && one.dataset.line };
    return [...this.all()].filter(wanted[query]);
  }
}

/** Run a script in a page that has an element `page`; returns the page, what the script posts, and a way to tell it something. */
export function open(script) {
  const document = new Element('document');
  const make = (name) => new Element(name, document);
  Object.assign(document, {
    ownerDocument: document, createElement: make, createElementNS: (_, name) => make(name), body: make('body'),
    createTextNode: (text) => Object.assign(make('#text'), { text }),
    getElementById: (id) => [...document.all()].find((one) => one.id === id) ?? null,
  });
  const page = make('main');
  page.id = 'page';
  document.append(page);
  const window = make('window');
  const posted = [];
  const globals = {
    window, document, console, setTimeout, clearTimeout, setInterval, clearInterval, structuredClone, URL,
    addEventListener: window.addEventListener.bind(window), acquireVsCodeApi: () => ({ postMessage: (message) => posted.push(message) }),
  };
  const context = vm.createContext(globals, { codeGeneration: { strings: false, wasm: false } });
  vm.runInContext(script, context);
  return { document, posted, tell: (data) => window.dispatch('message', { data }) };
}
