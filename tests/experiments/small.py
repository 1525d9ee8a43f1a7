"""Every experiment in a size for tests."""

from manyheads.experiments import budgets, certificates, depth, forced_errors, kth_largest

SMALL = {
    budgets: budgets.Config(n_tokens=(6, 8), d_heads=(1, 3, 7), spreads=(2.0,), n_seeds=3, n_steps=250),
    certificates: certificates.Config(n_tokens=(3,), widths=(4, 8), n_seeds=2, n_starts=3, walk=25),
    depth: depth.Config(n_tokens=(3,), n_seeds=2, n_steps=60, eval_size=512),
    forced_errors: forced_errors.Config(n_tokens=(10,), n_seeds=2, n_steps=10, n_starts=2, walk=10),
    kth_largest: kth_largest.Config(n_tokens=(4,), ks=(1, 2), d_heads=(2,), n_seeds=2, n_steps=200, eval_size=1024),
}
