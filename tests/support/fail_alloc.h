/* fail_alloc.h - lets the n-th allocation of the code under test fail.
 * A test named test_<name>_nomem.c is linked with fail_alloc.c and
 *   -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
 * Only calls from our own objects are counted; shared libraries keep their malloc, but for cJSON
 * after fail_alloc_in_json. */
#ifndef FAIL_ALLOC_H
#define FAIL_ALLOC_H
#include <pare/base.h>
#include <stdbool.h>

/* From now on `n` allocations succeed and all later ones fail; n < 0: none fails. */
void fail_alloc_after(long n);
/* From now on `n` allocations succeed, the next one fails, and all later ones succeed: what was
 * refused once and then forgotten shows as a success. n < 0: none fails. */
void fail_alloc_once(long n);
/* cJSON takes its memory here as well. */
void fail_alloc_in_json(void);
/* Whether an allocation was refused since the last fail_alloc_after or fail_alloc_once. */
bool fail_alloc_hit(void);

#endif
