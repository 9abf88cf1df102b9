/* text_dataset.c - data sets of texts: the documents of a file through the model's tokenizer. */
#include "base/support.h"
#include "dataset.h"
#include "text/text_internal.h"
#include <string.h>

/* The tokens that the tokenizer puts at the end of every text, as of [CLS] ... [SEP]: those in which this
 * one ends as the empty text does. */
static pare_status count_ending(size_t *count, pare_data_reader *r, const pare_tokenizer *t,
                                const int64_t *ids, size_t n)
{
    int64_t *none;
    size_t k;
    const pare_status st = pare_encode(&none, &k, r->scratch, t, "", 0, r->err);
    *count = 0;
    while (!st && *count < k && *count < n && none[k - 1 - *count] == ids[n - 1 - *count]) ++*count;
    return st;
}

/* A text that is longer than the context keeps its beginning and the tokens that end every text. */
static pare_status cut_to_context(pare_data_reader *r, const pare_tokenizer *t, int64_t *ids,
                                  size_t *n)
{
    pare_text_notes *const notes = &r->out->notes;
    const size_t most = r->model->context;
    size_t ending;
    if (!most || *n <= most) return PARE_OK;
    const pare_status st = count_ending(&ending, r, t, ids, *n);
    if (st) return st;
    if (ending > most) ending = most;
    memmove(ids + most - ending, ids + *n - ending, ending * sizeof *ids);
    notes->longer++;
    notes->most = most;
    if (*n > notes->longest) notes->longest = *n;
    *n = most;
    return PARE_OK;
}

static pare_status add_document(pare_data_reader *r, const pare_tokenizer *t,
                                const pare_document *d, bool labels)
{
    const char *text = d->text, *end = text + d->bytes;
    int64_t *ids, *target;
    size_t n;
    if (r->model->tokenizer == PARE_TOK_LLAMA2C) { /* as those models were trained */
        while (text < end && pare_is_white(*text)) text++;
        while (text < end && pare_is_white(end[-1])) end--;
        if (text == end) return PARE_OK;
    }
    pare_status st = pare_encode(&ids, &n, r->arena, t, text, (size_t)(end - text), r->err);
    if (st) return st;
    pare_text_note_words(&r->out->notes, t, d->text, d->bytes);
    if (r->out->task == PARE_TASK_TEXT) return pare_data_add_windows(r, ids, n);
    st = cut_to_context(r, t, ids, &n);
    if (!st && n == 0) r->out->skipped++;
    if (st || n == 0) return st;
    target = pare_alloc(r->arena, 1, sizeof *target);
    if (!target) return pare_no_memory(r->err);
    *target = labels ? d->label : -1;
    return pare_data_add(r, (pare_input){.batch = 1, .tokens = n, .ids = ids}, target);
}

pare_status pare_data_read_texts(pare_data_reader *r, const char *path, pare_text_format format,
                                 const pare_data_opts *o)
{
    const pare_model *const m = r->model;
    const bool pools = m->head.pool != PARE_POOL_NONE, stories = m->tokenizer == PARE_TOK_LLAMA2C;
    pare_tokenizer *t = NULL;
    pare_documents d = {0};
    pare_blob *b = NULL;
    char *text = NULL;
    size_t bytes = 0;
    if (!m->embedding.ids)
        return pare_fail(r->err, PARE_ERR_INPUT,
                         "text needs a model of tokens; this one takes vectors of width %zu",
                         m->embedding.width);
    pare_status st = pools ? PARE_OK : pare_data_window(r);
    if (!st)
        st = pare_tokenizer_new(&t, r->scratch, m->tokenizer, m->vocab, m->vocab_bytes, r->err);
    if (!st) st = pare_files_read(r->files, &b, path, r->err);
    if (!st) st = pare_text_read_blob(&text, &bytes, r->scratch, b, r->err);
    pare_blob_release(b);
    if (st) return st;
    pare_text_note_utf8(&r->out->notes, text, bytes);
    st = pare_documents_read(&d, r->scratch, text, bytes,
                             &(pare_document_opts){.format = format,
                                                   .lines = pools,
                                                   .whole = o->whole,
                                                   .not_marked = o->whole && !stories,
                                                   .column = o->column},
                             r->err);
    r->out->task = pools ? PARE_TASK_SENTENCE : PARE_TASK_TEXT;
    r->out->documents = d.n;
    r->out->separated = d.separated;
    r->out->between = d.between;
    for (size_t i = 0; !st && i < d.n; i++) {
        st = add_document(r, t, &d.list[i], d.labels);
        char where[40];
        snprintf(where, sizeof where, "line %zu", d.list[i].line);
        if (st && d.separated) pare_err_prefix(r->err, where);
    }
    if (!st && d.n == 0 && pools) return pare_fail(r->err, PARE_ERR_INPUT, "the file is empty");
    if (!st && r->n == 0)
        return pools ? pare_fail(r->err, PARE_ERR_INPUT, "no text in it (%zu without a token)",
                                 r->out->skipped)
                     : pare_fail(r->err, PARE_ERR_INPUT, "fewer than two tokens of text");
    return st;
}

/* ---- texts of the model itself ---------------------------------------------------------------- */

bool pare_data_is_self(const char *path, size_t *n)
{
    static const char prefix[] = "self:";
    enum { MOST = 1 << 20 };
    size_t count = 0;
    if (strncmp(path, prefix, sizeof prefix - 1) != 0) return false;
    for (const char *s = path + sizeof prefix - 1; *s; s++) {
        if (*s < '0' || *s > '9' || count > MOST) return false;
        count = 10 * count + (size_t)(*s - '0');
    }
    *n = count;
    return count > 0 && count <= MOST;
}

/* What a text begins with where nothing of it is known. */
static pare_status begin_text(pare_input *out, pare_data_reader *r, const pare_tokenizer *t)
{
    int64_t *ids;
    size_t n;
    pare_status st = pare_encode(&ids, &n, r->scratch, t, "", 0, r->err);
    if (st) return st;
    for (int64_t id = (int64_t)pare_tokenizer_size(t); n == 0 && id-- > 0;) {
        if (!pare_is_end_of_text(t, id)) continue;
        if (!(ids = pare_alloc(r->scratch, 1, sizeof *ids))) return pare_no_memory(r->err);
        ids[n++] = id;
    }
    *out = (pare_input){.batch = 1, .tokens = n, .ids = ids};
    return n ? PARE_OK
             : pare_fail(r->err, PARE_ERR_INPUT,
                         "the tokenizer has no token that begins or ends a text: the model cannot "
                         "write one from nothing");
}

pare_status pare_data_write_texts(pare_data_reader *r, size_t n, const pare_data_opts *o)
{
    const pare_model *const m = r->model;
    const char *const refused = pare_generate_refuses(m);
    pare_tokenizer *t = NULL;
    pare_generation g = {0};
    pare_input begin = {0};
    if (refused)
        return pare_fail(r->err, PARE_ERR_INPUT, "the model cannot write texts itself: %s",
                         refused);
    pare_status st = pare_data_window(r);
    if (!st)
        st = pare_tokenizer_new(&t, r->scratch, m->tokenizer, m->vocab, m->vocab_bytes, r->err);
    if (!st) st = begin_text(&begin, r, t);
    if (st) return st;
    pare_input *const prompts = pare_alloc(r->scratch, n, sizeof *prompts);
    if (!prompts) return pare_no_memory(r->err);
    for (size_t i = 0; i < n; i++) prompts[i] = begin;
    const size_t most = m->context && m->context < PARE_SELF_TOKENS ? m->context : PARE_SELF_TOKENS;
    const pare_generate_opts write = {.tokenizer = t,
                                      .tokens = most > begin.tokens ? most - begin.tokens : 1,
                                      .sample = {.temperature = 1, .top_p = 1},
                                      .seed = o->seed,
                                      .streams = true};
    st = pare_generate(&g, r->scratch, m, &(pare_inputs){n, prompts}, &write, o->exec, r->err);
    for (size_t i = 0; !st && i < n; i++) {
        const size_t tokens = begin.tokens + g.each[i].n;
        int64_t *const ids = pare_alloc(r->arena, tokens, sizeof *ids);
        if (!ids) return pare_no_memory(r->err);
        memcpy(ids, begin.ids, begin.tokens * sizeof *ids);
        if (g.each[i].n) memcpy(ids + begin.tokens, g.each[i].ids, g.each[i].n * sizeof *ids);
        st = pare_data_add_windows(r, ids, tokens);
    }
    r->out->documents = n;
    r->out->separated = "written by the model itself";
    if (!st && r->n == 0)
        return pare_fail(r->err, PARE_ERR_INPUT, "the model ended each of %zu texts at once", n);
    return st;
}
