/* Tests src/cert/conformal.c: a new input is above the largest of k seen ones no more often than it
 * says, and it says no more than that. */
#include "width_nets.h"
#include "cert/conformal.h"
#include <pare/width.h>

enum { NODES = 8, SEEN = 3, GAMES = 400 };

typedef struct board {
    pare_graph g;
    pare_mat x;
    pare_input in;
} board;

static void board_new(stage *s, board *b)
{
    b->g = rand_graph(s, NODES, 2, NULL);
    b->x = rand_mat(s, NODES, 3, 1);
    b->in = input_of(&b->x, &b->g);
}

static double error_on(stage *s, const pare_model *f, const pare_model *g, const pare_input *in)
{
    const pare_mat y = output_of(s, f, in), z = output_of(s, g, in);
    return mats_apart(&y, &z);
}

static void a_new_input_is_rarely_worse(void **state)
{
    (void)state;
    stage st, *const s = &st;
    stage_open(s, 5);
    const net n = rand_net(
        s, (net_shape){
               .features = 3, .dim = 4, .layers = 1, .classes = 2, .heads = 1, .residual = true});
    board fit;
    board_new(s, &fit);
    pare_width_opts o = PARE_WIDTH_OPTS_DEFAULT;
    pare_width_report r;
    pare_model *const f = model_of(s, &n), *g = NULL;
    const pare_inputs one = {1, &fit.in};
    o.dim = 2;
    assert_ok(pare_width(&g, &r, f, &one, &o, NULL, &s->err), &s->err);
    size_t worse = 0;
    double probability = 0;
    for (int game = 0; game < GAMES; game++) {
        const pare_mark mark = pare_arena_mark(s->w.arena);
        pare_input in[SEEN];
        double most = 0;
        for (size_t k = 0; k < SEEN; k++) {
            board b;
            board_new(s, &b);
            in[k] = b.in;
            most = fmax(most, error_on(s, f, g, &b.in));
        }
        const pare_inputs set = {SEEN, in};
        const pare_claim said =
            pare_new_input(PARE_NEW_INPUT_OUTPUTS, pare_draw_count(&set), 0, most, "a new board");
        probability = said.probability;
        board next;
        board_new(s, &next);
        worse += error_on(s, f, g, &next.in) > said.value;
        pare_arena_reset(s->w.arena, mark);
    }
    assert_true(probability == (double)SEEN / (SEEN + 1));
    /* 400 games at 1/4: 100 of them, give or take 8.7; four of these either way. */
    print_message("%zu of %d new inputs were worse, %g expected at most\n", worse, GAMES,
                  GAMES * (1 - probability));
    assert_true(worse <= 135 && worse >= 65);
    pare_model_free(f);
    pare_model_free(g);
    stage_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_new_input_is_rarely_worse)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
