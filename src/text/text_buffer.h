/* text_buffer.h - text and pieces of text that grow in an arena. Private to src/text.
 *
 * The first allocation that fails sticks in `failed`; what is put after it is dropped. */
#ifndef PARE_TEXT_TEXT_BUFFER_H
#define PARE_TEXT_TEXT_BUFFER_H
#include "token_maps.h"

typedef struct pare_buffer {
    pare_arena *arena;
    char *s;
    size_t n, capacity;
    bool failed;
} pare_buffer;

void pare_buffer_put(pare_buffer *b, const char *s, size_t n);
void pare_buffer_put_char(pare_buffer *b, uint32_t c); /* as UTF-8 */

typedef struct pare_span { /* a piece of text, borrowed */
    const char *s;
    size_t n;
    bool first; /* the text begins with it */
} pare_span;

typedef struct pare_spans {
    pare_arena *arena;
    pare_span *v;
    size_t n, capacity;
    bool failed;
} pare_spans;

void pare_spans_put(pare_spans *list, pare_span span); /* an empty one is not put */

typedef struct pare_id_list {
    pare_arena *arena;
    int32_t *v;
    size_t n, capacity;
    bool failed;
} pare_id_list;

/* Where `count` more ids may be written, which the caller then adds to n; NULL: memory is out. */
int32_t *pare_id_list_reserve(pare_id_list *list, size_t count);
void pare_id_list_put(pare_id_list *list, int32_t id);

/* Another line of *notes. */
PARE_MUST_USE pare_status pare_add_note(const char **notes, pare_arena *a, const char *line,
                                        pare_err *err);
#endif
