# Makes oracle.tsv, what R says of the numbers that TestOracle checks:
#
#   Rscript oracle.R > oracle.tsv
#
# R 4.2.2 made the one that is committed. Columns: what, inputs, outputs, the latter two separated by spaces.
set.seed(15)
text <- function(x) paste(sprintf("%.15g", x), collapse = " ")
say <- function(what, inputs, outputs) cat(what, text(inputs), text(outputs), sep = "\t", fill = FALSE)
line <- function(...) { say(...); cat("\n") }

for (df in c(1, 2, 3.5, 4, 7, 30, 1000)) for (t in c(0.1, 1, 1.96, 4, 12)) line("pt", c(t, df), pt(t, df, lower.tail = FALSE))
for (df in c(1, 2, 3.5, 4, 7, 30, 1000)) for (q in c(0.4, 0.05, 0.025, 0.001)) line("qt", c(q, df), qt(q, df, lower.tail = FALSE))
for (n in c(1, 4, 12)) { p <- runif(n)^3; line("holm", p, p.adjust(p, "holm")); line("BH", p, p.adjust(p, "BH")) }
for (n in c(1, 2, 5, 24)) { x <- round(rexp(n), 6); for (q in c(0.5, 0.9, 0.99)) line("quantile", c(q, x), quantile(x, q, type = 7)) }

# Power of a two-sided t test, by the noncentral t distribution: captures a side, sd, change, alpha.
for (k in c(2, 3, 5)) for (d in c(0.005, 0.01, 0.02, 0.05)) for (alpha in c(0.05, 0.0125))
  line("power", c(k, 0.01, d, alpha), power.t.test(n = k, delta = d, sd = 0.01, sig.level = alpha)$power)

# Welch's interval of a difference: mean, sd, n of either side, level 0.9; low, high, df.
for (i in 1:3) {
  a <- rnorm(8, 1, 0.02); b <- rnorm(11, 1.05, 0.05)
  w <- t.test(b, a, conf.level = 0.9)
  line("welch", c(mean(a), sd(a), 8, mean(b), sd(b), 11), c(w$conf.int, w$parameter))
}
