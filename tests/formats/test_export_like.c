/* Tests src/formats/export_like.c and folder_out.c: what no config can express is refused, and nothing is
 * left of it; an uncut folder keeps its bytes; -f replaces a model's folder and nothing else. (That
 * cuts of every family have the tensors that their config implies, and compute what pare computes,
 * is in tests/cli/folders.sh; failures of the disk are in tests/faults/test_folder_writes.c.) */
#include "model/precision.h"
#include <pare/model.h>
#include <pare_test.h>

#include <sys/stat.h>
#include <unistd.h>

typedef struct place {
    char dir[200], source[300], out[300];
    pare_model *in, *cut; /* cut: a clone, to be changed */
    pare_err err;
} place;

static void begin(place *p, pare_random_kind kind)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    pare_model *m = NULL;
    *p = (place){.in = NULL};
    test_mkdir(p->dir);
    test_path(p->out, p->dir, "out");
    o.kind = kind, o.dim = 8, o.heads = 2, o.layers = 3, o.ffn = 12, o.vocab = 9, o.context = 5;
    assert_ok(pare_random_model(&m, &o, &p->err), &p->err);
    assert_ok(pare_export_hf(m, test_path(p->source, p->dir, "in"), false, &p->err), &p->err);
    assert_ok(pare_model_load(&p->in, p->source, &p->err), &p->err);
    assert_ok(pare_model_clone(&p->cut, p->in, &p->err), &p->err);
    pare_model_free(m);
}

static void end(place *p)
{
    pare_model_free(p->cut);
    pare_model_free(p->in);
    test_rmdir(p->dir);
}

static pare_status export_cut(place *p)
{
    p->err = (pare_err){0};
    return pare_export_like(p->cut, p->in, p->source, p->out, 0, &p->err);
}

/* The first n hidden units of a block. */
static void cut_units(pare_model *m, size_t b, size_t n)
{
    pare_ffn *const f = &m->blocks[b].ffn;
    pare_weight *const last = &f->layers[f->nlayers - 1].w;
    float *const v = pare_alloc(m->arena, last->rows * n, sizeof *v);
    assert_non_null(v);
    for (size_t i = 0; i < last->rows * n; i++)
        v[i] = (float)pare_weight_at(last, i / n * last->cols + i % n);
    *last = (pare_weight){PARE_F32, last->rows, n, v};
    for (size_t l = 0; l + 1 < f->nlayers; l++) {
        f->layers[l].w.rows = n;
        if (pare_has(&f->layers[l].b)) f->layers[l].b.cols = n;
    }
}

static const pare_random_kind kinds[] = {PARE_RANDOM_GPT, PARE_RANDOM_LLAMA, PARE_RANDOM_BERT};

static void uniform_units_and_fewer_blocks_fit(void **state)
{
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        place p;
        pare_model *again = NULL;
        begin(&p, kinds[k]);
        for (size_t b = 0; b < 3; b++) cut_units(p.cut, b, 5);
        p.cut->blocks[1] = p.cut->blocks[2];
        p.cut->nblocks = 2;
        assert_ok(export_cut(&p), &p.err);
        assert_ok(pare_model_load(&again, p.out, &p.err), &p.err);
        assert_true(again->nblocks == 2 && again->blocks[1].ffn.layers[0].w.rows == 5);
        pare_model_free(again);
        end(&p);
    }
}

static void refused(place *p, const char *says)
{
    assert_int_equal(export_cut(p), PARE_ERR_INPUT);
    assert_contains(p->err.msg, says);
    assert_false(pare_file_exists(p->out));
    end(p);
}

static void what_no_config_can_express_is_refused(void **state)
{
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        place p;
        begin(&p, kinds[k]);
        cut_units(p.cut, 2, 5);
        refused(&p, "block 2 has 5 hidden units, block 0 has 12");
    }
}

static void other_numbers_outside_of_the_blocks_are_refused(void **state)
{
    (void)state;
    static float table[9 * 8];
    place p;
    begin(&p, PARE_RANDOM_GPT);
    memcpy(table, p.in->embedding.table.data, sizeof table);
    table[13] += 0.25f;
    p.cut->embedding.table.data = table;
    refused(&p, "embedding is another one");
}

static void an_attention_that_is_gone_is_refused(void **state)
{
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        place p;
        begin(&p, kinds[k]);
        pare_attn *const a = &p.cut->blocks[1].attn;
        const pare_norm out = a->out_norm;
        *a = (pare_attn){.kind = PARE_ATTN_ZERO, .din = a->din, .dout = a->dout, .skip = a->skip};
        a->out_norm = out;
        refused(&p, "block 1 has no");
    }
}

static void a_bias_that_the_folder_cannot_hold_is_refused(void **state)
{
    (void)state;
    static const float bias[8] = {1};
    place p;
    begin(&p, PARE_RANDOM_LLAMA);
    p.cut->blocks[0].ffn.layers[2].b = (pare_weight){PARE_F32, 1, 8, bias};
    refused(&p, "blocks.0.ffn.2.bias");
}

static void a_source_without_config_is_refused(void **state)
{
    (void)state;
    char config[400];
    place p;
    begin(&p, PARE_RANDOM_GPT);
    unlink(test_path(config, p.source, "config.json"));
    p.cut->nblocks = 2;
    refused(&p, "no config.json");
}

static void an_uncut_folder_keeps_its_bytes(void **state)
{
    (void)state;
    static const char *const names[] = {"config.json", "model.safetensors",
                                        "generation_config.json", "pytorch_model.bin"};
    char a[PARE_SHA256_HEX], b[PARE_SHA256_HEX], path[400];
    place p;
    begin(&p, PARE_RANDOM_LLAMA);
    test_write_file(test_path(path, p.source, "pytorch_model.bin"), "old", 3);
    test_write_file(test_path(path, p.source, "generation_config.json"), "{}", 2);
    assert_ok(pare_export_like(p.in, p.in, p.source, p.out, 0, &p.err), &p.err);
    for (size_t i = 0; i < 4; i++) {
        assert_ok(pare_sha256_file(a, test_path(path, p.source, names[i]), &p.err), &p.err);
        assert_ok(pare_sha256_file(b, test_path(path, p.out, names[i]), &p.err), &p.err);
        assert_string_equal(a, b);
    }
    /* A cut leaves out what holds the old weights in another form. */
    pare_folder_remove(p.out);
    p.cut->nblocks = 2;
    assert_ok(export_cut(&p), &p.err);
    assert_false(pare_file_exists(test_path(path, p.out, "pytorch_model.bin")));
    assert_true(pare_file_exists(test_path(path, p.out, "generation_config.json")));
    end(&p);
}

static void another_precision_is_written_everywhere(void **state)
{
    (void)state;
    char path[400];
    place p;
    pare_model *again = NULL;
    begin(&p, PARE_RANDOM_BERT);
    p.cut->nblocks = 2;
    assert_ok(pare_model_round(p.cut, NULL, PARE_F16, &p.err), &p.err);
    assert_ok(pare_export_like(p.cut, p.in, p.source, p.out, PARE_F16, &p.err), &p.err);
    assert_ok(pare_model_load(&again, p.out, &p.err), &p.err);
    assert_int_equal(pare_model_precision(again), PARE_F16);
    pare_model_free(again);
    size_t n = 0;
    char *const config = (char *)test_read_file(test_path(path, p.out, "config.json"), &n);
    assert_non_null(memmem(config, n, "\"float16\"", 9));
    free(config);
    end(&p);
}

/* ---- places ------------------------------------------------------------------------------------ */

static void check_refuses(place *p, bool overwrite, const char *says)
{
    assert_int_equal(pare_folder_check(p->out, overwrite, &p->err), PARE_ERR_IO);
    assert_contains(p->err.msg, p->out);
    assert_contains(p->err.msg, says);
}

static void only_the_folder_of_a_model_is_replaced(void **state)
{
    (void)state;
    char path[400];
    place p;
    begin(&p, PARE_RANDOM_GPT);
    assert_ok(pare_folder_check(p.out, false, &p.err), &p.err); /* nothing is there */
    test_write_file(p.out, "x", 1);
    check_refuses(&p, true, "is a file");
    unlink(p.out);
    assert_int_equal(symlink(p.source, p.out), 0);
    check_refuses(&p, true, "is a link");
    unlink(p.out);
    assert_int_equal(mkdir(p.out, 0777), 0);
    assert_ok(pare_folder_check(p.out, false, &p.err), &p.err); /* empty */
    test_write_file(test_path(path, p.out, "letters.txt"), "x", 1);
    check_refuses(&p, false, "may not be overwritten");
    check_refuses(&p, true, "no model");
    test_write_file(test_path(path, p.out, "config.json"), "{}", 2);
    assert_ok(pare_folder_check(p.out, true, &p.err), &p.err);
    assert_int_equal(mkdir(test_path(path, p.out, "1_Pooling"), 0777), 0);
    assert_ok(pare_folder_check(p.out, true, &p.err), &p.err);
    assert_int_equal(mkdir(test_path(path, p.out, ".git"), 0777), 0);
    check_refuses(&p, true, ".git");
    end(&p);
}

static void moving_replaces_the_whole_folder(void **state)
{
    (void)state;
    char path[400], left[400];
    place p;
    begin(&p, PARE_RANDOM_GPT);
    p.cut->nblocks = 2;
    assert_ok(export_cut(&p), &p.err);
    test_write_file(test_path(path, p.out, "old.txt"), "x", 1);
    /* Of a process that was killed; no process has this number. */
    snprintf(left, sizeof left, "%s.part-999999999", p.out);
    assert_int_equal(mkdir(left, 0777), 0);
    test_write_file(test_path(path, left, "config.json"), "{}", 2);
    char other[300];
    test_path(other, p.dir, "other");
    assert_ok(pare_export_like(p.cut, p.in, p.source, other, 0, &p.err), &p.err);
    assert_int_equal(pare_folder_move(other, p.out, false, &p.err), PARE_ERR_IO);
    assert_true(pare_file_exists(other));
    assert_ok(pare_folder_move(other, p.out, true, &p.err), &p.err);
    assert_false(pare_file_exists(other));
    assert_false(pare_file_exists(left));
    assert_false(pare_file_exists(test_path(path, p.out, "old.txt")));
    assert_true(pare_file_exists(test_path(path, p.out, "model.safetensors")));
    end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uniform_units_and_fewer_blocks_fit),
        cmocka_unit_test(what_no_config_can_express_is_refused),
        cmocka_unit_test(other_numbers_outside_of_the_blocks_are_refused),
        cmocka_unit_test(an_attention_that_is_gone_is_refused),
        cmocka_unit_test(a_bias_that_the_folder_cannot_hold_is_refused),
        cmocka_unit_test(a_source_without_config_is_refused),
        cmocka_unit_test(an_uncut_folder_keeps_its_bytes),
        cmocka_unit_test(another_precision_is_written_everywhere),
        cmocka_unit_test(only_the_folder_of_a_model_is_replaced),
        cmocka_unit_test(moving_replaces_the_whole_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
