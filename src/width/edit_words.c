/* edit_words.c - single-node edits in words. */
#include "prove.h"

pare_claim pare_width_edits(size_t rows)
{
    return (pare_claim){.kind = PARE_EDITS_OUTPUTS, .p = {(double)rows}};
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
