/*
 * Repairs of Scalar's markup that axe asks for, because it misleads screen readers or keeps the keyboard out. Scalar
 * resets attributes when the selection changes. With Scalar 1.76, which needs Node.js 22, axe still asks for four of them: the
 * role `none`, notifications, text boxes, and what scrolls.
 */
const REPAIRS = new Map([
  // A button of the sidebar cannot be selected, but it can be the current one.
  ['button[aria-selected]:not([role])', moveSelected],
  // A button is not a landmark, and has a role; an aside is a landmark of its own kind.
  [
    'button:is([role=search], [role=none]), aside[role=navigation]',
    (element) => element.removeAttribute('role'),
  ],
  // Landmarks need different names, but there is an example for each operation, and a tag's section has its header's name.
  [
    ':is(.scalar-card, .tag-section-container)[role=region]',
    (element) => element.setAttribute('role', 'group'),
  ],
  ['button:is([class*="copy"]):not([aria-label])', (button) => button.setAttribute('aria-label', 'Copy')],
  // The page and the client for test requests each have a list of messages.
  ['section[aria-label^="Notifications"]:not([role])', (section) => section.setAttribute('role', 'log')],
  // The client for test requests: fields have names.
  ['[role=dialog] button.scalar-button:not([aria-label])', nameEmptyButton],
  ['[role=dialog] input[type=checkbox]:not([aria-label])', (box) => box.setAttribute('aria-label', 'Send')],
  ['[role=dialog] [role=textbox]:not([aria-label])', nameTextbox],
  ['.markdown :is(pre > code, table)', makeScrollable],
  // Where the skip link leads
  ['main', (element) => Object.assign(element, { id: 'content', tabIndex: -1 })],
]);

export function repairMarkup() {
  for (const [selector, repair] of REPAIRS) document.querySelectorAll(selector).forEach(repair);
}

function moveSelected(button) {
  button.setAttribute('aria-current', button.getAttribute('aria-selected'));
  button.removeAttribute('aria-selected');
}

function nameEmptyButton(button) {
  if (button.textContent.trim() === '') button.setAttribute('aria-label', 'Choose a value');
}

/** A row has a field for the name of a parameter, and one for its value. */
function nameTextbox(field) {
  const [name] = field.closest('[role=row], tr')?.querySelectorAll('[role=textbox]') ?? [];
  field.setAttribute(
    'aria-label',
    field === name ? 'Name' : `Value of ${name?.textContent.trim() || 'the field'}`,
  );
}

/** Puts into the order of the Tab key what scrolls sideways, and nothing else. */
function makeScrollable(element) {
  if (element.scrollWidth > element.clientWidth) element.tabIndex = 0;
  else element.removeAttribute('tabindex');
}
