import { useEffect, useRef } from 'react';
import { useAnnounce } from './announcer.js';
import { KindIcon } from './illustration.js';
import { describeProblem } from './problem.js';

/** Replaces the form once the service has said that the key may not add animals. Takes the focus from its button. */
export function ReadOnly({ error }: { error: unknown }) {
  const { title, text } = describeProblem(error);
  const heading = useRef<HTMLHeadingElement>(null);
  const announce = useAnnounce();

  useEffect(() => {
    announce(`Not saved. ${title}. ${text}`);
    heading.current?.focus();
  }, [announce, title, text]);

  return (
    <section className="empty read-only" aria-labelledby="read-only-heading">
      <KindIcon kind="rabbit" />
      <h2 id="read-only-heading" className="empty-title" tabIndex={-1} ref={heading}>
        {title}
      </h2>
      <p>The animal was not saved. {text}</p>
    </section>
  );
}
