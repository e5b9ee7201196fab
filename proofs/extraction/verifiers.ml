
(** val fst : ('a1 * 'a2) -> 'a1 **)

let fst = function
| (x, _) -> x

(** val snd : ('a1 * 'a2) -> 'a2 **)

let snd = function
| (_, y) -> y



(** val eqn : int -> int -> bool **)

let rec eqn m0 n =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ ->
    (fun fO fS n -> if n=0 then fO () else fS (n-1))
      (fun _ -> true)
      (fun _ -> false)
      n)
    (fun m' ->
    (fun fO fS n -> if n=0 then fO () else fS (n-1))
      (fun _ -> false)
      (fun n' -> eqn m' n')
      n)
    m0

(** val size : 'a1 list -> int **)

let rec size = function
| [] -> 0
| _ :: s' -> Stdlib.Int.succ (size s')

(** val rcons : 'a1 list -> 'a1 -> 'a1 list **)

let rec rcons s z =
  match s with
  | [] -> z :: []
  | x :: s' -> x :: (rcons s' z)

(** val foldr : ('a1 -> 'a2 -> 'a2) -> 'a2 -> 'a1 list -> 'a2 **)

let rec foldr f z0 = function
| [] -> z0
| x :: s' -> f x (foldr f z0 s')

type 'f numbers = { zero : 'f; one : 'f; add : ('f -> 'f -> 'f);
                    subtract : ('f -> 'f -> 'f); mul : ('f -> 'f -> 'f);
                    div : ('f -> 'f -> 'f); max : ('f -> 'f -> 'f);
                    min : ('f -> 'f -> 'f); equal : ('f -> 'f -> bool) }

(** val sum : 'a1 numbers -> 'a2 list -> ('a2 -> 'a1) -> 'a1 **)

let sum n vocabulary g =
  foldr (fun t total -> n.add (g t) total) n.zero vocabulary

type ('f, 'a) m = ('a -> 'f) -> 'f

(** val ret : 'a2 -> ('a1, 'a2) m **)

let ret a f =
  f a

(** val bind : ('a1, 'a2) m -> ('a2 -> ('a1, 'a3) m) -> ('a1, 'a3) m **)

let bind m0 k f =
  m0 (fun a -> k a f)

(** val bind2 :
    ('a1, 'a2 * 'a3) m -> ('a2 -> 'a3 -> ('a1, 'a4) m) -> ('a1, 'a4) m **)

let bind2 m0 k f =
  m0 (fun o -> k (fst o) (snd o) f)

(** val draw : 'a1 numbers -> 'a2 list -> ('a2 -> 'a1) -> ('a1, 'a2) m **)

let draw n vocabulary r f =
  sum n vocabulary (fun t -> n.mul (r t) (f t))

(** val coin : 'a1 numbers -> 'a1 -> ('a1, bool) m **)

let coin n h f =
  n.add (n.mul h (f true)) (n.mul (n.subtract n.one h) (f false))

type ('f, 't) model = 't list -> 't -> 'f

(** val walk :
    'a1 numbers -> 'a2 list -> ('a1, 'a2) model -> int -> 'a2 list -> ('a1,
    'a2 list) m **)

let rec walk n vocabulary r n0 c =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> ret [])
    (fun n' ->
    bind (draw n vocabulary (r c)) (fun t ->
      bind (walk n vocabulary r n' (rcons c t)) (fun x -> ret (t :: x))))
    n0

(** val path_prob :
    'a1 numbers -> ('a1, 'a2) model -> 'a2 list -> 'a2 list -> 'a1 **)

let rec path_prob n r c = function
| [] -> n.one
| t :: x' -> n.mul (r c t) (path_prob n r (rcons c t) x')

type ('f, 't) verifier = 't list -> ('f, 't list * 't) m

(** val iteration :
    'a1 numbers -> 'a2 list -> ('a1, 'a2) model -> int -> ('a1, 'a2) verifier
    -> ('a1, 'a2 list * 'a2) m **)

let iteration n vocabulary q l verify =
  bind (walk n vocabulary q l []) verify

type ('f, 't) convention = { ratio0 : ('f, 't) model; h0 : ('t list -> 'f);
                             res0 : ('f, 't) model }

(** val ratio :
    'a1 numbers -> ('a1, 'a2) model -> ('a1, 'a2) model -> ('a1, 'a2)
    convention -> 'a2 list -> 'a2 -> 'a1 **)

let ratio n p q u c t =
  if n.equal (q c t) n.zero then u.ratio0 c t else n.div (p c t) (q c t)

(** val gain :
    'a1 numbers -> ('a1, 'a2) model -> ('a1, 'a2) model -> 'a2 list -> 'a1 ->
    'a2 -> 'a1 **)

let gain n p q c w t =
  n.max (n.subtract (n.mul w (p c t)) (q c t)) n.zero

(** val total_gain :
    'a1 numbers -> 'a2 list -> ('a1, 'a2) model -> ('a1, 'a2) model -> 'a2
    list -> 'a1 -> 'a1 **)

let total_gain n vocabulary p q c w =
  sum n vocabulary (gain n p q c w)

(** val residual :
    'a1 numbers -> 'a2 list -> ('a1, 'a2) model -> ('a1, 'a2) model -> ('a1,
    'a2) convention -> 'a2 list -> 'a1 -> 'a2 -> 'a1 **)

let residual n vocabulary p q u c w t =
  if n.equal (total_gain n vocabulary p q c w) n.zero
  then u.res0 c t
  else n.div (gain n p q c w t) (total_gain n vocabulary p q c w)

(** val correction :
    'a1 numbers -> 'a2 list -> ('a1, 'a2) model -> ('a1, 'a2) model -> ('a1,
    'a2) convention -> int -> 'a2 list -> 'a1 -> ('a1, 'a2) m **)

let correction n vocabulary p q u l s w =
  if eqn (size s) l
  then draw n vocabulary (p s)
  else draw n vocabulary (residual n vocabulary p q u s w)

(** val token_loop :
    'a1 numbers -> ('a1, 'a2) model -> ('a1, 'a2) model -> ('a1, 'a2)
    convention -> 'a2 list -> 'a2 list -> ('a1, 'a2 list) m **)

let rec token_loop n p q u c = function
| [] -> ret c
| t :: rest' ->
  bind (coin n (n.min (ratio n p q u c t) n.one)) (fun accepted ->
    if accepted then token_loop n p q u (rcons c t) rest' else ret c)

(** val token :
    'a1 numbers -> 'a2 list -> ('a1, 'a2) model -> ('a1, 'a2) model -> ('a1,
    'a2) convention -> int -> 'a2 list -> ('a1, 'a2 list * 'a2) m **)

let token n vocabulary p q u l x =
  bind (token_loop n p q u [] x) (fun s ->
    bind (correction n vocabulary p q u l s n.one) (fun y -> ret (s, y)))

(** val next_weight :
    'a1 numbers -> ('a1, 'a2) model -> ('a1, 'a2) model -> ('a1, 'a2)
    convention -> 'a2 list -> 'a1 -> 'a2 -> 'a1 **)

let next_weight n p q u c w t =
  n.min (n.mul w (ratio n p q u c t)) n.one

(** val accept_prob :
    'a1 numbers -> 'a2 list -> ('a1, 'a2) model -> ('a1, 'a2) model -> ('a1,
    'a2) convention -> 'a2 list -> 'a1 -> 'a1 **)

let accept_prob n vocabulary p q u c w =
  let gain0 = total_gain n vocabulary p q c w in
  let denominator = n.subtract (n.add gain0 n.one) w in
  if n.equal denominator n.zero then u.h0 c else n.div gain0 denominator

(** val block_loop :
    'a1 numbers -> 'a2 list -> ('a1, 'a2) model -> ('a1, 'a2) model -> ('a1,
    'a2) convention -> 'a2 list -> 'a2 list -> 'a1 -> ('a2 list * 'a1) ->
    ('a1, 'a2 list * 'a1) m **)

let rec block_loop n vocabulary p q u c rest w best =
  match rest with
  | [] -> ret best
  | t :: rest' ->
    let c' = rcons c t in
    let w' = next_weight n p q u c w t in
    let h =
      match rest' with
      | [] -> w'
      | _ :: _ -> accept_prob n vocabulary p q u c' w'
    in
    bind (coin n h) (fun accepted ->
      block_loop n vocabulary p q u c' rest' w'
        (if accepted then (c', w') else best))

(** val block :
    'a1 numbers -> 'a2 list -> ('a1, 'a2) model -> ('a1, 'a2) model -> ('a1,
    'a2) convention -> int -> 'a2 list -> ('a1, 'a2 list * 'a2) m **)

let block n vocabulary p q u l x =
  bind2 (block_loop n vocabulary p q u [] x n.one ([], n.one)) (fun s w ->
    bind (correction n vocabulary p q u l s w) (fun y -> ret (s, y)))

(** val by_ratio :
    'a1 numbers -> ('a1, 'a2) model -> ('a1, 'a2) model -> ('a1, 'a2)
    convention -> ('a2 -> 'a2 -> bool) -> 'a2 list -> 'a2 -> 'a2 -> bool **)

let by_ratio n p q u earlier c t t' =
  let a = ratio n p q u c t in
  let b = ratio n p q u c t' in
  if n.equal a b then earlier t t' else n.equal (n.max a b) b

(** val path_lower :
    ('a1 list -> 'a1 -> 'a1 -> bool) -> 'a1 list -> 'a1 list -> 'a1 list ->
    bool **)

let rec path_lower lower c x y =
  match x with
  | [] -> false
  | t :: x' ->
    (match y with
     | [] -> false
     | t' :: y' ->
       if lower c t t'
       then true
       else if lower c t' t then false else path_lower lower (rcons c t) x' y')

(** val highest :
    'a1 numbers -> 'a2 list -> ('a2 list -> 'a2 -> 'a2 -> bool) -> ('a1, 'a2)
    model -> int -> int -> ('a1, 'a2 list) m **)

let rec highest n vocabulary lower q l more =
  bind (walk n vocabulary q l []) (fun x ->
    (fun fO fS n -> if n=0 then fO () else fS (n-1))
      (fun _ -> ret x)
      (fun more' ->
      bind (highest n vocabulary lower q l more') (fun y ->
        ret (if path_lower lower [] x y then y else x)))
      more)

(** val mass_below :
    'a1 numbers -> 'a2 list -> ('a1, 'a2) model -> ('a2 list -> 'a2 -> 'a2 ->
    bool) -> 'a1 -> 'a2 list -> 'a2 list -> 'a1 **)

let rec mass_below n vocabulary q lower weight c = function
| [] -> n.zero
| t :: a' ->
  n.add
    (n.mul weight
      (sum n vocabulary (fun t' -> if lower c t' t then q c t' else n.zero)))
    (mass_below n vocabulary q lower (n.mul weight (q c t)) (rcons c t) a')

(** val power : 'a1 numbers -> 'a1 -> int -> 'a1 **)

let rec power n a k =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> n.one)
    (fun k' -> n.mul a (power n a k'))
    k

(** val skewed :
    'a1 numbers -> 'a2 list -> ('a1, 'a2) model -> ('a2 list -> 'a2 -> 'a2 ->
    bool) -> int -> 'a2 list -> 'a1 **)

let skewed n vocabulary q lower k a =
  let below = mass_below n vocabulary q lower n.one [] a in
  n.subtract (power n (n.add (path_prob n q [] a) below) k) (power n below k)

(** val rows_of :
    'a1 numbers -> ('a1, 'a2) model -> ('a2 list -> 'a1) -> ('a1, 'a2) model **)

let rows_of n q mass c t =
  if n.equal (mass c) n.zero then q c t else n.div (mass (rcons c t)) (mass c)

(** val greedy_multipath :
    'a1 numbers -> 'a2 list -> ('a1, 'a2) model -> ('a1, 'a2) model -> ('a1,
    'a2) convention -> ('a2 list -> 'a2 -> 'a2 -> bool) -> int -> int ->
    ('a1, 'a2 list * 'a2) m **)

let greedy_multipath n vocabulary p q u lower l more =
  bind (highest n vocabulary lower q l more) (fun x ->
    block n vocabulary p
      (rows_of n q (skewed n vocabulary q lower (Stdlib.Int.succ more))) u l x)
