/* Single-node edits in words: the statement's name says which are meant, so that a verifier finds
 * them again; the domain says it to people. */
#include "prove.h"
#include <stdio.h>
#include <string.h>

const char *edits_name(pare_arena *a, size_t most)
{
    return most ? pare_sprintf(a, PARE_WIDTH_EDITS_ROWS, most) : PARE_WIDTH_EDITS;
}

bool edits_asked(size_t *most, const char *name)
{
    char again[96];
    *most = 0;
    if (strcmp(name, PARE_WIDTH_EDITS) == 0) return true;
    if (sscanf(name, PARE_WIDTH_EDITS_ROWS, most) != 1 || *most == 0) return false;
    snprintf(again, sizeof again, PARE_WIDTH_EDITS_ROWS, *most);
    return strcmp(name, again) == 0;
}

const char *edits_domain(pare_arena *a, const char *text, const edits_bound *e)
{
    if (e->rows == e->different)
        return pare_sprintf(a,
                            "%s, and with the features of any one node replaced by any of its %zu "
                            "different rows (%zu edits)",
                            text, e->rows, e->edits);
    return pare_sprintf(a,
                        "%s, and with the features of any one node replaced by any of the %zu most "
                        "frequent of its %zu different rows (%zu edits)",
                        text, e->rows, e->different, e->edits);
}
