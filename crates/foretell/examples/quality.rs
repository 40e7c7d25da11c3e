//! Prints the gap to the exact model on ColoredGridWorld.
use foretell::*;
fn main() -> Result<()> {
    let domain = domains::get("colored-gridworld")?;
    let logs = |seed| Logs::memory(domain.alphabet().clone(), domains::sample(&domain, 10_000, 13, Seed(seed)).collect());
    let gap = |model: &Model, test: &Logs| -> Result<()> {
        let s = score(model, test, domain.pomdp())?;
        let truth = s.truth.unwrap();
        let at = |h: &[HorizonScore], n: usize| h[n - 1].log_likelihood - truth[n - 1].log_likelihood;
        let g = |h: &[HorizonScore]| [1, 2, 4, 7, 10, 13].map(|n| format!("{:7.3}", at(h, n))).join(" ");
        println!("   model {} lost {} truth {:.3}", g(&s.horizons), s.lost, truth[12].log_likelihood);
        for (name, b) in &s.baselines {
            println!("   {name:8} {}", g(b));
        }
        Ok(())
    };
    let arg: String = std::env::args().nth(1).unwrap_or("default".into());
    for seed in 0..2u64 {
        let (train, test) = (logs(2 * seed + 100), logs(2 * seed + 101));
        if arg == "default" {
            let t = std::time::Instant::now();
            let params = LearnParams { seed, ..LearnParams::default() };
            let model = learn(&train, &params)?;
            println!("default seed {seed} {:?}", t.elapsed());
            gap(&model, &test)?;
            println!(" mix .2");
            gap(&model.clone().with_mix(0.2)?, &test)?;
        } else {
            for p in [Projection::Hashed, Projection::Rademacher, Projection::Spherical, Projection::Identity] {
                for cuts in [Cuts::Complete, Cuts::Ragged] {
                    let t = std::time::Instant::now();
                    let params = LearnParams {
                        seed,
                        cuts,
                        test_projection: p,
                        history_projection: p,
                        ngram_length: 1,
                        ..LearnParams::paper()
                    };
                    let model = learn(&train, &params)?;
                    println!("paper {p:?} {cuts:?} seed {seed} {:?}", t.elapsed());
                    gap(&model, &test)?;
                }
            }
        }
    }
    Ok(())
}
