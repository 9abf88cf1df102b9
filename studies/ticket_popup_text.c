/* ticket_popup_text.c - a text for those who give none: words of a made-up language in which the
 * words of a paragraph come back, so that looking back pays. The same bytes for the same seed. */
#include "ticket_popup_text.h"
#include <string.h>

enum { WORDS = 400, TOPIC = 12, PARAGRAPH = 60, LONGEST = 8, BYTES = 400000 };

typedef struct language {
    char word[WORDS][LONGEST + 1];
} language;

/* Syllables of a consonant and a vowel; common words are short. */
static void make_words(language *l, pare_rng *r)
{
    static const char consonant[] = "bcdfghklmnprstvw", vowel[] = "aeiou";
    for (size_t i = 0; i < WORDS; i++) {
        const size_t most = i < 40 ? 2 : 4, n = 1 + pare_rng_below(r, most);
        char *w = l->word[i];
        for (size_t k = 0; k < n; k++) {
            *w++ = consonant[pare_rng_below(r, 16)];
            *w++ = vowel[pare_rng_below(r, 5)];
        }
        *w = '\0';
    }
}

/* The lower the number, the likelier the word. */
static size_t common(pare_rng *r)
{
    const uint64_t below = 1 + pare_rng_below(r, WORDS);
    return (size_t)pare_rng_below(r, below);
}

static pare_status put_word(pare_out *out, const char *word, size_t k, size_t *bytes, pare_err *err)
{
    const char *const end = k + 1 == PARAGRAPH ? ".\n" : k % 9 == 8 ? ", " : " ";
    *bytes += strlen(word) + strlen(end);
    return pare_out_printf(out, err, "%s%s", word, end);
}

pare_status popup_text(const char *path, uint64_t seed, pare_err *err)
{
    language l;
    pare_rng r = pare_rng_at(seed, (uint64_t)7 << 60);
    pare_out *out = NULL;
    size_t bytes = 0;
    make_words(&l, &r);
    pare_status st = pare_out_open(&out, path, true, err);
    while (!st && bytes < BYTES) {
        size_t topic[TOPIC];
        for (size_t i = 0; i < TOPIC; i++) topic[i] = (size_t)pare_rng_below(&r, WORDS);
        for (size_t k = 0; !st && k < PARAGRAPH; k++) {
            const size_t w = k % 2 ? topic[pare_rng_below(&r, TOPIC)] : common(&r);
            st = put_word(out, l.word[w], k, &bytes, err);
        }
    }
    if (!st) return pare_out_commit(out, err);
    pare_out_abort(out);
    return st;
}
