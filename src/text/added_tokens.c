/* added_tokens.c - finding added tokens in a text (tokenizer_json.h): at each place the longest. */
#include "tokenizer_json.h"
#include "unicode.h"
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

static int by_content(const void *x, const void *y)
{
    const pare_added_token *const a = x, *const b = y;
    const size_t n = a->content.n < b->content.n ? a->content.n : b->content.n;
    const int order = memcmp(a->content.s, b->content.s, n);
    if (order) return order;
    if (a->content.n != b->content.n) return a->content.n < b->content.n ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

void pare_added_tokens_index(pare_added_tokens *t)
{
    if (t->n) qsort(t->v, t->n, sizeof *t->v, by_content);
    size_t at = 0;
    for (size_t b = 0; b <= 256; b++) {
        while (at < t->n && (uint8_t)t->v[at].content.s[0] < b) at++;
        t->begins[b] = at;
    }
}

/* Of the tokens [from, to), sorted by their byte at `depth`, the first whose byte is not below c. */
static size_t first_not_below(const pare_added_tokens *t, size_t from, size_t to, size_t depth,
                              unsigned c)
{
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if ((uint8_t)t->v[middle].content.s[depth] < c)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* The longest token at the begin of s, or NULL; of several with the same content that of the lowest id. The
 * range of those that agree so far shrinks byte by byte. */
static const pare_added_token *longest_at(const pare_added_tokens *t, const char *s, size_t n)
{
    const pare_added_token *best = NULL;
    size_t from = t->begins[(uint8_t)s[0]], to = t->begins[(uint8_t)s[0] + 1];
    for (size_t depth = 1; from < to; depth++) {
        if (t->v[from].content.n == depth) best = &t->v[from];
        while (from < to && t->v[from].content.n == depth) from++; /* the same content, other ids */
        if (from == to) break;
        if (depth == n) break;
        const unsigned c = (uint8_t)s[depth];
        from = first_not_below(t, from, to, depth, c);
        to = c < 255 ? first_not_below(t, from, to, depth, c + 1) : to;
    }
    return best;
}

/* Letters, marks, digits, connectors and joiners: \w of Rust's regex. */
static bool is_word(uint32_t c)
{
    if (c == PARE_NO_CHAR) return false;
    const utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_NL) || k == UTF8PROC_CATEGORY_PC ||
           c == 0x200C || c == 0x200D || (c >= 0x24B6 && c <= 0x24E9) ||
           (c >= 0x1F130 && c <= 0x1F189);
}

/* The character that ends at `end`, and where it begins. */
static uint32_t char_before(pare_piece text, size_t end, size_t *begin)
{
    size_t at = end - 1, len;
    while (at > 0 && end - at < 4 && ((uint8_t)text.s[at] & 0xC0) == 0x80) at--;
    const uint32_t c = pare_utf8_next(text.s + at, end - at, &len);
    *begin = at + len == end ? at : end - 1;
    return at + len == end ? c : PARE_NO_CHAR;
}

static bool stands_alone(pare_piece text, size_t begin, size_t end)
{
    size_t len;
    if (begin > 0 && is_word(char_before(text, begin, &len))) return false;
    return end == text.n || !is_word(pare_utf8_next(text.s + end, text.n - end, &len));
}

bool pare_added_tokens_find(const pare_added_tokens *t, pare_piece text, size_t from, size_t *begin,
                            size_t *end, int32_t *id)
{
    for (size_t at = from; t->n && at < text.n; at++) {
        const uint8_t b = (uint8_t)text.s[at];
        if (t->begins[b] == t->begins[b + 1]) continue;
        const pare_added_token *const found = longest_at(t, text.s + at, text.n - at);
        if (!found) continue;
        const size_t after = at + found->content.n;
        if (found->single_word && !stands_alone(text, at, after)) {
            at = after - 1;
            continue;
        }
        size_t left = at, right = after, len;
        while (found->left_strip && left > from) {
            if (!pare_char_is_space(char_before(text, left, &len)) || len < from) break;
            left = len;
        }
        while (found->right_strip && right < text.n &&
               pare_char_is_space(pare_utf8_next(text.s + right, text.n - right, &len)))
            right += len;
        *begin = left;
        *end = right;
        *id = found->id;
        return true;
    }
    return false;
}
