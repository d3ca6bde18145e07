import { useEffect, useRef } from 'react';
import { useAnnounce } from './announcer.js';
import { KindIcon } from './illustration.js';
import { describeMissingScope } from './problem.js';

const { title, text } = describeMissingScope('pets:write');

/** Replaces the form of a key that may not add animals. After a save that was refused, it takes the focus from its button. */
export function ReadOnly({ isAfterSave }: { isAfterSave: boolean }) {
  const heading = useRef<HTMLHeadingElement>(null);
  const announce = useAnnounce();

  useEffect(() => {
    if (!isAfterSave) return;
    announce(`Not saved. ${title}. ${text}`);
    heading.current?.focus();
  }, [announce, isAfterSave]);

  return (
    <section className="empty read-only" aria-labelledby="read-only-heading">
      <KindIcon kind="rabbit" />
      <h2 id="read-only-heading" className="empty-title" tabIndex={-1} ref={heading}>
        {title}
      </h2>
      <p>
        {isAfterSave && 'The animal was not saved. '}
        {text}
      </p>
    </section>
  );
}
