/*
 * Repairs of Scalar's markup, where it misleads screen readers or keeps the keyboard out. Scalar renders sections as
 * they come into view and resets attributes when the selection changes, so every change of the page is looked at.
 */
const REPAIRS = new Map([
  // A button of the sidebar cannot be selected, but it can be the current one.
  ['button[aria-selected]:not([role])', moveSelected],
  // A button is not a landmark; without this role its text becomes its name.
  ['button[role=search]', (button) => button.removeAttribute('role')],
  // An aside is a landmark of its own kind.
  ['aside[role=navigation]', (aside) => aside.removeAttribute('role')],
  // Landmarks need different names, and there is an example for each operation.
  ['.scalar-card[role=region]', (card) => card.setAttribute('role', 'group')],
  // The section of a tag has the name of the header section in it.
  ['.tag-section-container[role=region]', (section) => section.setAttribute('role', 'group')],
  // The button for more languages is among the tabs of the first few.
  ['[role=tablist] button.client-libraries__select', makeTab],
  ['button:is([class*="copy"]):not([aria-label])', (button) => button.setAttribute('aria-label', 'Copy')],
  // The page and the client for test requests each have a list of messages.
  ['section[aria-label^="Notifications"]:not([role])', (section) => section.setAttribute('role', 'log')],
  // The client for test requests: buttons have a role, and fields have names.
  ['button[role=none]', (button) => button.removeAttribute('role')],
  ['[role=combobox]:not([aria-expanded])', (field) => field.setAttribute('aria-expanded', 'false')],
  ['[aria-label^="undefined "]', dropUndefined],
  ['[role=dialog] button.scalar-button:not([aria-label])', nameEmptyButton],
  ['[role=dialog] input[type=checkbox]:not([aria-label])', (box) => box.setAttribute('aria-label', 'Send')],
  ['[role=dialog] [role=textbox]:not([aria-label])', nameTextbox],
  ['.markdown :is(pre > code, table)', makeScrollable],
]);

export function watchMarkup() {
  let isScheduled = false;
  const schedule = () => {
    if (isScheduled) return;
    isScheduled = true;
    requestAnimationFrame(() => {
      isScheduled = false;
      for (const [selector, repair] of REPAIRS) document.querySelectorAll(selector).forEach(repair);
    });
  };
  new MutationObserver(schedule).observe(document.body, {
    subtree: true,
    childList: true,
    attributeFilter: ['aria-selected', 'role'],
  });
  addEventListener('resize', schedule);
}

function moveSelected(button) {
  button.setAttribute('aria-current', button.getAttribute('aria-selected'));
  button.removeAttribute('aria-selected');
}

function makeTab(button) {
  const isSelected = button.classList.contains('client-libraries__active');
  if (button.getAttribute('aria-selected') === String(isSelected)) return;
  button.setAttribute('role', 'tab');
  button.setAttribute('aria-label', 'More languages');
  button.setAttribute('aria-selected', isSelected);
}

function dropUndefined(field) {
  field.setAttribute('aria-label', field.getAttribute('aria-label').replace('undefined ', ''));
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

/** What scrolls sideways has to be in the order of the Tab key, and only that. */
function makeScrollable(element) {
  if (element.scrollWidth > element.clientWidth) element.tabIndex = 0;
  else element.removeAttribute('tabindex');
}
