/*
 * Repairs of Scalar's markup, where it misleads screen readers or keeps the keyboard out. Scalar renders sections as
 * they come into view and resets attributes when the selection changes, so every change of the page is looked at.
 */
const REPAIRS = new Map([
  // A button of the sidebar cannot be selected, but it can be the current one.
  ['button[aria-selected]:not([role])', moveSelected],
  // A button is not a landmark; without this role its text becomes its name.
  ['button[role=search]', (button) => button.removeAttribute('role')],
  // An aside cannot be a navigation, but the list of links in it can.
  ['aside[role=navigation]', moveNavigation],
  // The button for more languages is among the tabs of the first few.
  ['[role=tablist] button.client-libraries__select', makeTab],
  ['button:is([class*="copy"]):not([aria-label])', (button) => button.setAttribute('aria-label', 'Copy')],
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

function moveNavigation(aside) {
  const list = aside.querySelector('ul')?.parentElement;
  if (!list || list === aside) return;
  list.setAttribute('role', 'navigation');
  list.setAttribute('aria-label', aside.getAttribute('aria-label'));
  aside.removeAttribute('role');
  aside.removeAttribute('aria-label');
}

function makeTab(button) {
  const isSelected = button.classList.contains('client-libraries__active');
  if (button.getAttribute('aria-selected') === String(isSelected)) return;
  button.setAttribute('role', 'tab');
  button.setAttribute('aria-label', 'More languages');
  button.setAttribute('aria-selected', isSelected);
}

/** What scrolls sideways has to be in the order of the Tab key, and only that. */
function makeScrollable(element) {
  if (element.scrollWidth > element.clientWidth) element.tabIndex = 0;
  else element.removeAttribute('tabindex');
}
