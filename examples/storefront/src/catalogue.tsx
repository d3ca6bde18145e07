import type { NewPet, Pet, PetStatus } from '@animal-store/client';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useEffect, useEffectEvent, useRef, useState } from 'react';
import { useAnnounce } from './announcer.js';
import { handOnFocus } from './hand-on-focus.js';
import { KindIcon } from './illustration.js';
import { Notice } from './notice.js';
import { CardSkeleton, PetCard } from './pet-card.js';
import { StatusFilter } from './status-filter.js';
import { useTRPC } from './trpc.js';
import { STATUS_LABELS } from './vocabulary.js';

/** Fills whole rows of two, four and five cards. */
const PAGE_SIZE = 20;

export interface CatalogueProps {
  /** The animal that is being saved */
  readonly saving: NewPet | undefined;
  /** Those that were added here, the newest first: they stay in front instead of at the end */
  readonly added: readonly Pet[];
}

export function Catalogue(props: CatalogueProps) {
  const [status, setStatus] = useState<PetStatus>();
  return (
    <section className="catalogue" aria-labelledby="catalogue-heading">
      <header className="catalogue-head">
        <h2 id="catalogue-heading" tabIndex={-1}>
          Catalogue
        </h2>
        <StatusFilter status={status} onChange={setStatus} />
      </header>
      <PetList key={status ?? ''} status={status} onShowAll={() => setStatus(undefined)} {...props} />
    </section>
  );
}

interface PetListProps extends CatalogueProps {
  readonly status: PetStatus | undefined;
  readonly onShowAll: () => void;
}

/** The animals of one status, or all: page after page as the reader comes near the end. */
function PetList({ status, saving, added, onShowAll }: PetListProps) {
  const query = usePetPages(status);
  const error = useStandingError(query);
  const announce = useAnnounce();
  const matches = (pet: NewPet) => status === undefined || pet.status === status;
  const front = added.filter(matches);
  const frontIds = new Set(front.map(({ id }) => id));
  const loaded = query.data?.pages.flat() ?? [];
  const pets = loaded.filter(({ id }) => !frontIds.has(id));
  const count = pets.length + front.length;
  const isSaving = saving !== undefined && matches(saving);
  const isComplete = query.isSuccess && !query.hasNextPage;

  const progress = query.isSuccess
    ? `${isComplete ? 'All shown' : 'Shown so far'}: ${countAnimals(loaded.length)}`
    : '';
  useEffect(() => {
    if (progress !== '') announce(progress);
  }, [announce, progress]);

  const more = () => void query.fetchNextPage();
  const retry = () => (query.isFetchNextPageError ? more() : void query.refetch());
  if (isComplete && count === 0 && !isSaving) return <Empty status={status} onShowAll={onShowAll} />;
  return (
    <>
      <ul className="cards" aria-busy={query.isFetching}>
        {isSaving && <PetCard key="saving" pet={saving} />}
        {front.map((pet) => (
          <PetCard key={pet.id} pet={pet} isNew />
        ))}
        {pets.map((pet) => (
          <PetCard key={pet.id} pet={pet} />
        ))}
        {query.isFetching && error === null && <Skeletons count={query.isFetchingNextPage ? 4 : 8} />}
      </ul>
      {error !== null && (
        <Notice error={error} since={query.errorUpdatedAt} isRetrying={query.isFetching} onRetry={retry} />
      )}
      {query.hasNextPage && error === null && (
        <Further pages={query.data?.pages.length ?? 0} isLoading={query.isFetchingNextPage} onReach={more} />
      )}
      {isComplete && <p className="end">That is everyone: {countAnimals(count)}.</p>}
    </>
  );
}

function usePetPages(status: PetStatus | undefined) {
  const trpc = useTRPC();
  return useInfiniteQuery(
    trpc.listPets.infiniteQueryOptions(
      { limit: PAGE_SIZE, ...(status === undefined ? {} : { status }) },
      // A page that is not full is the last; after a full one there may be an empty one.
      { getNextPageParam: (page) => (page.length < PAGE_SIZE ? undefined : page.at(-1)?.id) },
    ),
  );
}

/** The last failure until a success: while it is tried again, the query itself has none. */
function useStandingError({ error, isSuccess }: { error: unknown; isSuccess: boolean }): unknown {
  const [standing, setStanding] = useState<unknown>(null);
  if (error !== null && error !== standing) setStanding(error);
  else if (isSuccess && standing !== null) setStanding(null);
  return error ?? standing;
}

interface FurtherProps {
  /** How many pages are shown: with each, the end is looked for anew */
  readonly pages: number;
  readonly isLoading: boolean;
  readonly onReach: () => void;
}

/** The end of what is loaded: coming near it loads more, and so does its button. */
function Further({ pages, isLoading, onReach }: FurtherProps) {
  const end = useRef<HTMLDivElement>(null);
  const reach = () => {
    if (!isLoading) onReach();
  };
  const come = useEffectEvent(reach);
  // biome-ignore lint/correctness/useExhaustiveDependencies: an observer speaks up only when it is new or something moves
  useEffect(() => {
    if (end.current === null) return;
    const observer = new IntersectionObserver(
      (entries) => entries.some((entry) => entry.isIntersecting) && come(),
      {
        rootMargin: '600px',
      },
    );
    observer.observe(end.current);
    return () => observer.disconnect();
  }, [pages]);
  return (
    <div ref={end} className="further">
      <button
        ref={handOnFocus}
        type="button"
        className="button quiet"
        onClick={reach}
        aria-disabled={isLoading}
      >
        {isLoading ? 'Loading more…' : 'Load more'}
      </button>
    </div>
  );
}

function countAnimals(count: number): string {
  return count === 1 ? '1 animal' : `${count} animals`;
}

function Skeletons({ count }: { count: number }) {
  // biome-ignore lint/suspicious/noArrayIndexKey: they are all alike
  return Array.from({ length: count }, (_, index) => <CardSkeleton key={`skeleton-${index}`} />);
}

function Empty({ status, onShowAll }: Pick<PetListProps, 'status' | 'onShowAll'>) {
  return (
    <div className="empty">
      <KindIcon kind="paw" />
      {status === undefined ? (
        <>
          <p className="empty-title">Nobody lives here yet</p>
          <p>The first animal that you add moves in right here.</p>
        </>
      ) : (
        <>
          <p className="empty-title">No animal is {STATUS_LABELS[status].toLowerCase()}</p>
          <button ref={handOnFocus} type="button" className="button quiet" onClick={onShowAll}>
            Show all animals
          </button>
        </>
      )}
    </div>
  );
}
