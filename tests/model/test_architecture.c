/* Tests src/model/architecture.c: the canonical form of an architecture, and what changes it. */
#include "model/model_facts.h"
#include <pare_test.h>

static pare_model *some(pare_random_kind kind)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    pare_model *m = NULL;
    pare_err err;
    o.kind = kind;
    o.dim = 8, o.heads = 2, o.layers = 2, o.ffn = 6, o.vocab = 7, o.context = 6;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    return m;
}

static const char *text_of(pare_arena *a, const pare_model *m)
{
    char *text = NULL;
    pare_err err;
    assert_ok(pare_architecture_text(&text, a, m, &err), &err);
    return text;
}

/* Written out: certificates of today must be read by the programs of tomorrow. */
static void the_form_of_a_tiny_model_is_this_text(void **state)
{
    (void)state;
    static const double w[4] = {1, 2, 3, 4};
    static pare_head head = {.dk = 2, .dv = 2, .scale = 0.1};
    static pare_dense layer[2] = {{.w = {PARE_F64, 2, 2, w}}, {.w = {PARE_F64, 2, 2, w}}};
    static pare_block block = {
        .attn = {.kind = PARE_ATTN_EXACT, .din = 2, .dout = 2, .nheads = 1, .heads = &head},
        .ffn = {.kind = PARE_FFN_MLP, .din = 2, .dout = 2, .nlayers = 2, .layers = layer}};
    char hex[PARE_SHA256_HEX], want[PARE_SHA256_HEX];
    pare_model *m = NULL;
    pare_err err;
    assert_ok(pare_model_new(&m, &err), &err);
    m->name = pare_strdup(m->arena, "of no importance");
    m->embedding.width = 2;
    m->embedding.pos = (pare_positions){.kind = PARE_POS_SINUSOIDAL, .base = 10000};
    m->pattern = (pare_pattern){.kind = PARE_WINDOW, .window = 3, .sinks = 1};
    m->context = 16;
    m->blocks = &block;
    m->nblocks = 1;
    block.attn.wq = block.attn.wk = block.attn.wv = (pare_weight){PARE_F64, 2, 2, w};
    block.attn.in_norm = (pare_norm){.kind = PARE_NORM_RMS, .eps = 1e-5, .divisor = 2};
    block.attn.skip.kind = block.ffn.skip.kind = PARE_SKIP_IDENTITY;
    block.ffn.act = PARE_ACT_GELU_TANH;
    m->head.pool = PARE_POOL_MEAN;
    m->head.out.w = (pare_weight){PARE_F64, 2, 2, w};
    assert_ok(pare_model_check(m, &err), &err);
    static const char golden[] =
        "{\"blocks\": [{\"attention\": {\"heads\": [{\"dk\": 2, \"dv\": 2, \"k\": 0, \"o\": 0, "
        "\"q\": 0, "
        "\"scale\": 0.1, \"v\": 0}], "
        "\"in\": 2, \"in_norm\": {\"divisor\": 2, \"eps\": 1e-05, \"kind\": \"rms\"}, \"kind\": "
        "\"exact\", \"out\": 2, "
        "\"skip\": \"identity\"}, \"ffn\": {\"activation\": \"gelu_tanh\", \"in\": 2, \"kind\": "
        "\"mlp\", \"layers\": 2, "
        "\"out\": 2, \"skip\": \"identity\"}}], \"context\": 16, \"embedding\": {\"ids\": false, "
        "\"positions\": {\"base\": 10000, \"kind\": \"sinusoidal\"}, \"width\": 2}, "
        "\"head\": {\"pool\": \"mean\", \"tied\": false}, "
        "\"pattern\": {\"kind\": \"window\", \"sinks\": 1, \"window\": 3}}";
    assert_string_equal(text_of(m->arena, m), golden);
    assert_ok(pare_sha256_of(want, golden, strlen(golden), &err), &err);
    assert_ok(pare_architecture_sha256(hex, m, &err), &err);
    assert_string_equal(hex, want);
    m->blocks = NULL, m->nblocks = 0;
    pare_model_free(m);
}

/* Names of models and numbers of weights are no part of it; nor is the file it came from. */
static void names_weights_and_files_do_not_count(void **state)
{
    (void)state;
    char dir[200], path[300];
    test_mkdir(dir);
    test_path(path, dir, "m");
    for (int kind = PARE_RANDOM_GPT; kind <= PARE_RANDOM_GRAPH; kind++) {
        pare_model *const m = some((pare_random_kind)kind), *again = NULL;
        pare_err err;
        pare_arena *const a = pare_arena_new();
        const char *const text = text_of(a, m);
        assert_ok(pare_model_save(m, path, true, NULL, &err), &err);
        assert_ok(pare_model_load(&again, path, &err), &err);
        again->name = pare_strdup(again->arena, "another name");
        static const float zeros[64];
        again->blocks[0].attn.bo = (pare_weight){PARE_F32, 1, 8, zeros};
        assert_string_equal(text_of(a, again), text);
        pare_model_free(again);
        pare_model_free(m);
        pare_arena_free(a);
    }
    test_rmdir(dir);
}

/* One setting at a time; false when there is none of that number. */
static bool change(pare_model *m, int which)
{
    pare_attn *const at = &m->blocks[1].attn;
    pare_ffn *const f = &m->blocks[0].ffn;
    switch (which) {
    case 0:
        m->context++;
        return true;
    case 1:
        m->embedding.width++;
        return true;
    case 2:
        m->embedding.ids = !m->embedding.ids;
        return true;
    case 3:
        if (m->embedding.ids)
            m->embedding.vocab++;
        else
            m->embedding.width += 2;
        return true;
    case 4:
        m->embedding.pos.kind =
            m->embedding.pos.kind == PARE_POS_NONE ? PARE_POS_LEARNED : PARE_POS_NONE;
        return true;
    case 5: /* the base of positions */
        m->embedding.pos = (pare_positions){.kind = PARE_POS_SINUSOIDAL, .base = 10000};
        return true;
    case 6:
        m->embedding.pos =
            (pare_positions){.kind = PARE_POS_SINUSOIDAL, .base = nextafter(10000, 20000)};
        return true;
    case 7:
        m->embedding.pos = (pare_positions){.kind = PARE_POS_SINUSOIDAL, .base = 9999};
        return true;
    case 8:
        m->embedding.pos = (pare_positions){.kind = PARE_POS_ROTARY, .after_map = true};
        return true;
    case 9:
        m->embedding.pos =
            (pare_positions){.kind = PARE_POS_ROTARY, .interleaved = true, .after_map = true};
        return true;
    case 10:
        m->embedding.norm = (pare_norm){.kind = PARE_NORM_RMS, .eps = 1e-5, .divisor = 8};
        return true;
    case 11:
        m->embedding.norm =
            (pare_norm){.kind = PARE_NORM_RMS, .eps = nextafter(1e-5, 1), .divisor = 8};
        return true;
    case 12:
        m->embedding.norm = (pare_norm){.kind = PARE_NORM_RMS, .eps = 1e-5, .divisor = 7};
        return true;
    case 13:
        m->embedding.norm =
            (pare_norm){.kind = PARE_NORM_RMS, .eps = 1e-5, .divisor = 8, .shift = 1e-9};
        return true;
    case 14:
        m->embedding.norm = (pare_norm){.kind = PARE_NORM_LAYER, .eps = 1e-3, .divisor = 8};
        return true;
    case 15:
        m->embedding.norm = (pare_norm){.kind = PARE_NORM_BATCH, .eps = 1e-5};
        return true;
    case 16:
        m->embedding.norm = (pare_norm){.kind = PARE_NORM_MEAN};
        return true;
    case 17:
        m->pattern = (pare_pattern){.kind = PARE_WINDOW, .window = 6};
        return true;
    case 18:
        m->pattern = (pare_pattern){.kind = PARE_WINDOW, .window = 5};
        return true;
    case 19:
        m->pattern = (pare_pattern){.kind = PARE_WINDOW, .window = 5, .sinks = 1};
        return true;
    case 20:
        m->pattern = (pare_pattern){.kind = PARE_GRAPH, .expander_degree = 2};
        return true;
    case 21:
        m->pattern = (pare_pattern){.kind = PARE_GRAPH, .expander_degree = 3};
        return true;
    case 22:
        m->pattern = (pare_pattern){.kind = PARE_GRAPH, .expander_degree = 3, .expander_seed = 1};
        return true;
    case 23:
        m->pattern = (pare_pattern){.kind = PARE_GRAPH, .self_loops = true, .expander_degree = 3};
        return true;
    case 24:
        m->nblocks--;
        return true;
    case 25:
        at->kind = PARE_ATTN_MEANQ;
        return true;
    case 26:
        at->kind = PARE_ATTN_POLY, at->tolerance = 0.1;
        return true;
    case 27:
        at->kind = PARE_ATTN_POLY, at->tolerance = 0.2;
        return true;
    case 28:
        at->heads[1].scale = nextafter(at->heads[1].scale, 9);
        return true;
    case 29:
        at->heads[1].scale *= -1;
        return true;
    case 30:
        at->heads[1].q = 0;
        return true;
    case 31:
        at->heads[1].k++;
        return true;
    case 32:
        at->heads[1].v++;
        return true;
    case 33:
        at->heads[1].o = 0;
        return true;
    case 34:
        at->heads[1].dk--;
        return true;
    case 35:
        at->heads[1].dv--;
        return true;
    case 36:
        at->heads[1].planes = 1, at->heads[1].freq = 1;
        return true;
    case 37:
        at->nheads--;
        return true;
    case 38:
        at->skip.kind = PARE_SKIP_NONE;
        return true;
    case 39:
        at->skip.kind = PARE_SKIP_DENSE;
        return true;
    case 40:
        at->in_norm = (pare_norm){.kind = PARE_NORM_MEAN};
        return true;
    case 41:
        at->out_norm = (pare_norm){.kind = PARE_NORM_MEAN};
        return true;
    case 42:
        at->din++;
        return true;
    case 43:
        at->dout++;
        return true;
    case 44:
        f->kind = f->kind == PARE_FFN_MLP ? PARE_FFN_GATED : PARE_FFN_MLP;
        return true;
    case 45:
        f->act = f->act == PARE_ACT_GELU ? PARE_ACT_GELU_TANH : PARE_ACT_GELU;
        return true;
    case 46:
        f->nlayers--;
        return true;
    case 47:
        f->skip.kind = PARE_SKIP_DIAGONAL;
        return true;
    case 48:
        f->in_norm = (pare_norm){.kind = PARE_NORM_MEAN};
        return true;
    case 49:
        f->out_norm = (pare_norm){.kind = PARE_NORM_MEAN};
        return true;
    case 50:
        f->din++;
        return true;
    case 51:
        f->dout++;
        return true;
    case 52:
        m->head.pool = PARE_POOL_MEAN;
        return true;
    case 53:
        m->head.act = PARE_ACT_TANH == m->head.act ? PARE_ACT_RELU : PARE_ACT_TANH;
        return true;
    case 54:
        m->head.tied = !m->head.tied;
        return true;
    case 55:
        m->head.norm = (pare_norm){.kind = PARE_NORM_BATCH, .eps = 0.125};
        return true;
    case 56:
        m->tokenizer = m->tokenizer == PARE_TOK_BYTES ? PARE_TOK_WORDS : PARE_TOK_BYTES;
        return true;
    case 57:
        m->head.pool = PARE_POOL_MAX;
        return true;
    case 58:
        m->head.pool = PARE_POOL_LAST;
        return true;
    case 59:
        m->head.normalize = true;
        return true;
    default:
        return false;
    }
}

/* Not even two of the changes are alike: each is a field of the form. */
static void every_setting_changes_the_hash(void **state)
{
    (void)state;
    enum { MOST = 80 };
    for (int kind = PARE_RANDOM_GPT; kind <= PARE_RANDOM_GRAPH; kind++) {
        char hex[MOST][PARE_SHA256_HEX];
        size_t n = 0;
        for (int which = -1; which < MOST; which++) {
            pare_model *const m = some((pare_random_kind)kind);
            pare_err err;
            const bool more = which < 0 || change(m, which);
            if (more) assert_ok(pare_architecture_sha256(hex[n++], m, &err), &err);
            pare_model_free(m);
            if (!more) break;
        }
        assert_int_equal(n, 61);
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < i; k++)
                if (strcmp(hex[i], hex[k]) == 0)
                    fail_msg("%s: changes %zu and %zu are alike", pare_random_kinds[kind], k, i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_form_of_a_tiny_model_is_this_text),
        cmocka_unit_test(names_weights_and_files_do_not_count),
        cmocka_unit_test(every_setting_changes_the_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
