import type { NewPet, Pet, PetStatus, Scope } from '@animal-store/client';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { useAnnounce } from './announcer.js';
import { useCategory } from './categories.js';
import { CATEGORY_CHOICES, CategoryFilter } from './category-filter.js';
import { useChoiceInAddress } from './choice-in-address.js';
import { KindIcon } from './illustration.js';
import { LoadMore, useLastError } from './load-more.js';
import { moveFocusOnRemoval } from './move-focus.js';
import { Notice } from './notice.js';
import { CardSkeleton, PetCard } from './pet-card.js';
import { usePetPages } from './pet-pages.js';
import { useReplaceItem } from './replace-item.js';
import { StatusFilter } from './status-filter.js';
import { STATUS_LABELS, STATUSES } from './vocabulary.js';

export interface CatalogueProps {
  /** The animal that is being saved */
  readonly saving: NewPet | undefined;
  /** Animals added in this tab, newest first; they are shown first rather than at the end */
  readonly added: readonly Pet[];
  /** Of the key: what it may do with the animals */
  readonly scopes: readonly Scope[];
  /** Called with an animal that has changed. */
  readonly onChange: (pet: Pet) => void;
}

export function Catalogue(props: CatalogueProps) {
  const [status, setStatus] = useChoiceInAddress('status', STATUSES);
  const [category, setCategory] = useChoiceInAddress('category', CATEGORY_CHOICES);
  const categoryId = category === undefined ? undefined : Number(category);
  const showAll = () => {
    setStatus(undefined);
    setCategory(undefined);
  };
  return (
    <section className="catalogue" aria-labelledby="catalogue-heading">
      <header className="catalogue-head">
        <h2 id="catalogue-heading" tabIndex={-1}>
          Catalogue
        </h2>
        <div className="filters">
          <CategoryFilter category={category} onChange={setCategory} />
          <StatusFilter
            legend="Show animals by status"
            labels={STATUS_LABELS}
            status={status}
            onChange={setStatus}
          />
        </div>
      </header>
      <PetList
        key={`${status} ${category}`}
        status={status}
        categoryId={categoryId}
        onShowAll={showAll}
        {...props}
      />
    </section>
  );
}

interface PetListProps extends CatalogueProps {
  readonly status: PetStatus | undefined;
  readonly categoryId: number | undefined;
  readonly onShowAll: () => void;
}

/** The animals of one status and category, or all. Loads the next page when the user scrolls near the end. */
function PetList({ status, categoryId, saving, added, scopes, onChange, onShowAll }: PetListProps) {
  const query = usePetPages(status, categoryId);
  const replace = useReplaceItem('listPets');
  const queryClient = useQueryClient();
  const error = useLastError(query);
  const announce = useAnnounce();
  const matches = (pet: NewPet) =>
    (status === undefined || pet.status === status) &&
    (categoryId === undefined || pet.categoryId === categoryId);
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

  const loadMore = () => void query.fetchNextPage();
  // Without a first page, the key has probably not been read either.
  const retryAll = () => queryClient.refetchQueries({ predicate: ({ state }) => state.status === 'error' });
  const retry = () => (query.isFetchNextPageError ? loadMore() : void retryAll());
  if (isComplete && count === 0 && !isSaving)
    return <Empty status={status} categoryId={categoryId} onShowAll={onShowAll} />;
  const change = (pet: Pet) => {
    replace(pet);
    onChange(pet);
  };
  const card = { scopes, onChange: change };
  return (
    <>
      <ul className="cards" aria-busy={query.isFetching}>
        {isSaving && <PetCard key="saving" pet={saving} {...card} />}
        {front.map((pet) => (
          <PetCard key={pet.id} pet={pet} isNew {...card} />
        ))}
        {pets.map((pet) => (
          <PetCard key={pet.id} pet={pet} {...card} />
        ))}
        {query.isFetching && error === null && <Skeletons count={query.isFetchingNextPage ? 4 : 8} />}
      </ul>
      {error !== null && (
        <Notice error={error} since={query.errorUpdatedAt} isRetrying={query.isFetching} onRetry={retry} />
      )}
      {query.hasNextPage && error === null && (
        <LoadMore
          pages={query.data?.pages.length ?? 0}
          isLoading={query.isFetchingNextPage}
          onLoad={loadMore}
        />
      )}
      {isComplete && <p className="catalogue-end">That is everyone: {countAnimals(count)}.</p>}
    </>
  );
}

function countAnimals(count: number): string {
  return count === 1 ? '1 animal' : `${count} animals`;
}

function Skeletons({ count }: { count: number }) {
  // biome-ignore lint/suspicious/noArrayIndexKey: they are all the same
  return Array.from({ length: count }, (_, index) => <CardSkeleton key={`skeleton-${index}`} />);
}

function Empty({ status, categoryId, onShowAll }: Pick<PetListProps, 'status' | 'categoryId' | 'onShowAll'>) {
  const category = useCategory(categoryId ?? 0);
  const label = categoryId === undefined ? undefined : category.label.toLowerCase();
  const ofCategory = label === undefined ? 'No animal' : `None of the ${label}`;
  return (
    <div className="empty">
      <KindIcon kind={category.kind} />
      {status === undefined && label === undefined ? (
        <>
          <p className="empty-title">Nobody lives here yet</p>
          <p>The first animal that you add moves in right here.</p>
        </>
      ) : (
        <>
          <p className="empty-title">
            {status === undefined
              ? `No ${label} yet`
              : `${ofCategory} is ${STATUS_LABELS[status].toLowerCase()}`}
          </p>
          <button ref={moveFocusOnRemoval} type="button" className="button quiet" onClick={onShowAll}>
            Show all animals
          </button>
        </>
      )}
    </div>
  );
}
